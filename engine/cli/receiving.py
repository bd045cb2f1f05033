"""Open the receivers of a configuration: the only module that joins connectors and notifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import convert

from connectors.terminal import TerminalReceiver
from engine.config import ElasticsearchSettings, ReceiverSettings, Secret, SlackSettings, WebhookSettings
from engine.errors import RuntimeMissing, UsageError
from engine.model.answers import incident_value
from engine.model.inspections import Inspection
from engine.model.notifications import Notification
from engine.ports import Receiver

Show = Callable[[Notification], None]


@runtime_checkable
class RightsReport(Protocol):
    """A receiver that can tell what it lacks the rights for."""

    def missing_rights(self) -> Sequence[str]:
        """Return a sentence for each thing that it may not do."""


@runtime_checkable
class InspectableReceiver(Protocol):
    """A receiver that can be tried without sending anything."""

    def inspect(self) -> Sequence[Inspection]:
        """Return what was tried and how it went. Never raises."""


def open_receivers(settings: tuple[ReceiverSettings, ...], show: Show) -> Mapping[str, Receiver]:
    """Return every receiver by name. Secrets are read here; terminals print by `show`.

    Raises UsageError when a secret cannot be read, RuntimeMissing when a package is not installed.
    """
    return {receiver.name: open_receiver(receiver, show) for receiver in settings}


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
