"""Open the receivers of a configuration: the only module that joins connectors and notifier."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import convert

from connectors.terminal import TerminalReceiver
from engine.config import (
    AlertmanagerSettings,
    ElasticsearchSettings,
    EmailSettings,
    PagerDutySettings,
    ReceiverSettings,
    SlackSettings,
    TeamsSettings,
    WebhookSettings,
)
from engine.errors import RuntimeMissing, UsageError
from engine.model.answers import incident_value
from engine.model.inspections import Inspection
from engine.model.notifications import Notification
from engine.ports import Receiver
from engine.secrets import revealed

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
    opener = _OPENERS.get(settings.type)
    try:
        return TerminalReceiver(show) if opener is None else opener(settings)
    except UsageError as error:
        raise UsageError(f"receiver {settings.name}: {error}") from None


def _slack(settings: SlackSettings) -> Receiver:
    try:
        from connectors import slack  # noqa: PLC0415 - the package is optional
    except ImportError:
        raise RuntimeMissing("receivers of type slack need the package slack_sdk: pip install 'tocsin[slack]'") from None
    if settings.webhook_url is not None:
        return slack.open_webhook_receiver(settings.webhook_url.reveal())
    from engine.picture import png_of, why_no_png  # noqa: PLC0415 - drawn for Slack only

    paint = None if why_no_png() else png_of
    return slack.open_receiver(
        settings.channel, revealed(settings.token), settings.base_url, app_token=revealed(settings.app_token), paint=paint
    )


def _webhook(settings: WebhookSettings) -> Receiver:
    from connectors import webhook  # noqa: PLC0415 - loads the HTTP client

    return webhook.open_receiver(revealed(settings.url), incident_value, revealed(settings.token))


def _pagerduty(settings: PagerDutySettings) -> Receiver:
    from connectors import pagerduty  # noqa: PLC0415 - loads the HTTP client

    return pagerduty.open_receiver(settings.routing_key.reveal(), settings.base_url)


def _alertmanager(settings: AlertmanagerSettings) -> Receiver:
    from connectors import alertmanager  # noqa: PLC0415 - loads the HTTP client

    authorization = f"Bearer {settings.token.reveal()}" if settings.token else ""
    if settings.user:
        credentials = f"{settings.user}:{revealed(settings.password)}"
        authorization = f"Basic {b64encode(credentials.encode()).decode()}"
    return alertmanager.open_receiver(revealed(settings.url), authorization, settings.resolve_timeout_s)


def _email(settings: EmailSettings) -> Receiver:
    from connectors import email  # noqa: PLC0415 - loads the SMTP client

    server = email.SmtpServer(settings.host, settings.port, settings.tls, settings.user, revealed(settings.password))
    return email.open_receiver(server, settings.sender, settings.recipients)


def _teams(settings: TeamsSettings) -> Receiver:
    from connectors import teams  # noqa: PLC0415 - loads the HTTP client

    return teams.open_receiver(settings.webhook_url.reveal())


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


_OPENERS: Mapping[str, Callable[[Any], Receiver]] = {  # by the type of the settings that they take
    "slack": _slack,
    "webhook": _webhook,
    "elasticsearch": _elasticsearch,
    "pagerduty": _pagerduty,
    "alertmanager": _alertmanager,
    "email": _email,
    "teams": _teams,
}
