"""Opening the receivers of a configuration: the one place where connectors meet the notifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connectors.terminal import TerminalReceiver
from engine.config import ReceiverSettings, Secret, SlackSettings, WebhookSettings
from engine.errors import RuntimeMissing, UsageError
from engine.model.answers import incident_value
from engine.model.notifications import Notification
from engine.ports import Receiver

Show = Callable[[Notification], None]


def open_receivers(settings: tuple[ReceiverSettings, ...], show: Show) -> Mapping[str, Receiver]:
    """Return every receiver by its name; secrets are read here. Terminals print by `show`.

    Raises UsageError when a secret is not where it should be, RuntimeMissing when a package is not installed.
    """
    return {each.name: open_receiver(each, show) for each in settings}


def open_receiver(settings: ReceiverSettings, show: Show) -> Receiver:
    """Return one receiver; raises as open_receivers does, naming the receiver."""
    try:
        if isinstance(settings, SlackSettings):
            return _slack(settings)
        if isinstance(settings, WebhookSettings):
            return _webhook(settings)
    except UsageError as error:
        raise UsageError(f"receiver {settings.name}: {error}") from None
    return TerminalReceiver(show)


def _slack(settings: SlackSettings) -> Receiver:
    try:
        from connectors import slack  # noqa: PLC0415 - only who tells Slack needs its package
    except ImportError:
        raise RuntimeMissing("receivers of type slack need the package slack_sdk: pip install 'tocsin[slack]'") from None
    if settings.webhook_url is not None:
        return slack.open_webhook_receiver(settings.webhook_url.reveal())
    return slack.open_receiver(settings.channel, settings.token.reveal() if settings.token else "", settings.base_url)


def _webhook(settings: WebhookSettings) -> Receiver:
    from connectors import webhook  # noqa: PLC0415 - loads the HTTP client

    url = settings.url.reveal() if isinstance(settings.url, Secret) else settings.url
    return webhook.open_receiver(url, incident_value, settings.token.reveal() if settings.token else "")
