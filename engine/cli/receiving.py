"""Open the receivers of a configuration: the only module that joins connectors and notifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import convert

from connectors.terminal import TerminalReceiver
from engine.config import ElasticsearchSettings, ReceiverSettings, Secret, SlackSettings, WebhookSettings
from engine.errors import RuntimeMissing, UsageError
from engine.model.answers import incident_value
from engine.model.notifications import Notification
from engine.ports import Receiver

Show = Callable[[Notification], None]


@runtime_checkable
class RightsReport(Protocol):
    """A receiver that can tell what it lacks the rights for."""

    def missing_rights(self) -> Sequence[str]:
        """Return a sentence for each thing that it may not do."""


def open_receivers(settings: tuple[ReceiverSettings, ...], show: Show) -> Mapping[str, Receiver]:
    """Return every receiver by name. Secrets are read here; terminals print by `show`.

    Raises UsageError when a secret cannot be read, RuntimeMissing when a package is not installed.
    """
    return {receiver.name: open_receiver(receiver, show) for receiver in settings}


def check_receivers(settings: tuple[ReceiverSettings, ...]) -> None:
    """Open every receiver without using it. Raises UsageError with the problems of all of them, a secret that cannot be read
    or a package that is not installed."""
    problems: list[str] = []
    for receiver in settings:
        try:
            open_receiver(receiver, lambda notification: None)
        except (UsageError, RuntimeMissing) as error:
            problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))


def open_receiver(settings: ReceiverSettings, show: Show) -> Receiver:
    """Return one receiver. Raises the errors of open_receivers, with the name of the receiver."""
    try:
        if isinstance(settings, SlackSettings):
            return _slack(settings)
        if isinstance(settings, WebhookSettings):
            return _webhook(settings)
        if isinstance(settings, ElasticsearchSettings):
            return _elasticsearch(settings)
    except UsageError as error:
        raise UsageError(f"receiver {settings.name}: {error}") from None
    return TerminalReceiver(show)


def _slack(settings: SlackSettings) -> Receiver:
    try:
        from connectors import slack  # noqa: PLC0415 - the package is optional
    except ImportError:
        raise RuntimeMissing("receivers of type slack need the package slack_sdk: pip install 'tocsin[slack]'") from None
    if settings.webhook_url is not None:
        return slack.open_webhook_receiver(settings.webhook_url.reveal())
    return slack.open_receiver(settings.channel, settings.token.reveal() if settings.token else "", settings.base_url)


def _webhook(settings: WebhookSettings) -> Receiver:
    from connectors import webhook  # noqa: PLC0415 - loads the HTTP client

    url = settings.url.reveal() if isinstance(settings.url, Secret) else settings.url
    return webhook.open_receiver(url, incident_value, settings.token.reveal() if settings.token else "")


def _elasticsearch(settings: ElasticsearchSettings) -> Receiver:
    try:
        from connectors.elasticsearch.connection import ElasticsearchConnection  # noqa: PLC0415
        from connectors.elasticsearch.incidents import receiver  # noqa: PLC0415 - only who writes to Elasticsearch needs its package
    except ImportError:
        raise RuntimeMissing(
            "receivers of type elasticsearch need the package elasticsearch: pip install 'tocsin[elasticsearch]'"
        ) from None
    connection = convert(settings.connection, ElasticsearchConnection)
    return receiver.open_receiver(connection, settings.index, settings.changes, settings.retention_s)
