"""The `receivers` of tocsin.yml: schema and conversion to settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import model_validator

from engine.config.connection import ConnectionEntry, connection_of
from engine.config.faults import finding_error, validated_by
from engine.config.protocols import (
    AlertmanagerEntry,
    AlertmanagerSettings,
    EmailEntry,
    EmailSettings,
    PagerDutyEntry,
    PagerDutySettings,
    TeamsEntry,
    TeamsSettings,
)
from engine.config.secrets import Address, ProtectedAddress, SecretText, placed, placed_address
from engine.dsl.codes import Code
from engine.dsl.report import did_you_mean
from engine.dsl.schema import Duration, Strict, Text, one_of
from engine.language import LANGUAGES
from engine.model.words import ENGLISH
from engine.secrets import Secret

RECEIVER_TYPES = ("terminal", "slack", "webhook", "elasticsearch", "pagerduty", "alertmanager", "email", "teams")
SLACK_API = "https://slack.com/api/"


class TerminalSettings(Struct, frozen=True):
    """A receiver that prints to the terminal."""

    name: str
    type: str = "terminal"
    destination: str = ""


class SlackSettings(Struct, frozen=True):
    """A Slack channel, reached by `token` and `channel`, or by `webhook_url`, which determines the channel. `app_token`: of the
    app, to take what people do there; None: messages have no buttons."""

    name: str
    channel: str
    token: Secret | None
    webhook_url: Secret | None
    base_url: str
    app_token: Secret | None = None
    type: str = "slack"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return f"{self.channel} by {self.token}" if self.token else f"by {self.webhook_url}"


class WebhookSettings(Struct, frozen=True):
    """An address that JSON is posted to; `url` is text, or a Secret when the address itself is secret."""

    name: str
    url: str | Secret
    token: Secret | None
    type: str = "webhook"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return str(self.url)


class ElasticsearchSettings(Struct, frozen=True):
    """The indices of incidents. `connection`: the fields of an ElasticsearchConnection, as JSON. `changes`: the index of their
    changes, empty for none. `retention_s`: how long the documents of ended incidents are kept; 0: for ever."""

    name: str
    connection: Mapping[str, Any]
    index: str
    changes: str
    retention_s: float
    type: str = "elasticsearch"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return f"{self.index} at {', '.join(self.connection['urls'])}"


ReceiverSettings = (
    TerminalSettings
    | SlackSettings
    | WebhookSettings
    | ElasticsearchSettings
    | PagerDutySettings
    | AlertmanagerSettings
    | EmailSettings
    | TeamsSettings
)


def _index_name(value: str) -> None:
    if re.fullmatch(r"[a-z0-9.][a-z0-9._-]{0,199}", value) is None or value in (".", ".."):
        raise ValueError(value)


IndexName = Annotated[
    str, validated_by(_index_name, Code.BAD_OPTION, "the name of an index", "lower-case letters, digits, `.`, `_` and `-`")
]


class TerminalEntry(Strict):
    """a terminal receiver, which has no keys"""

    def settings(self, name: str, folder: Path) -> TerminalSettings:
        """Return the settings."""
        return TerminalSettings(name)


class SlackEntry(Strict):
    """a slack receiver: channel and token, and app_token for buttons; or webhook_url"""

    channel: Text | None = None
    token: SecretText | None = None
    app_token: SecretText | None = None
    webhook_url: SecretText | None = None
    base_url: ProtectedAddress = SLACK_API

    @model_validator(mode="before")
    @classmethod
    def _is_one_of_two(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() - cls.model_fields.keys():
            return value  # an unknown key is reported, and may be meant for one that is missing
        if {"channel", "token", "webhook_url"} & value.keys() not in ({"channel", "token"}, {"webhook_url"}):
            raise finding_error(
                Code.RECEIVER_SHAPE, "needs either `channel` and `token`, or `webhook_url`", "docs/notifications.md"
            )
        if "app_token" in value and "webhook_url" in value:
            raise finding_error(
                Code.RECEIVER_SHAPE, "`app_token` needs `channel` and `token`: a webhook can only post", "docs/notifications.md"
            )
        return value

    def settings(self, name: str, folder: Path) -> SlackSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        secrets = (placed(self.token, folder), placed(self.webhook_url, folder))
        return SlackSettings(name, self.channel or "", *secrets, self.base_url, placed(self.app_token, folder))


class WebhookEntry(Strict):
    """a webhook receiver: url, and token if needed"""

    url: Address
    token: SecretText | None = None

    def settings(self, name: str, folder: Path) -> WebhookSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        return WebhookSettings(name, placed_address(self.url, folder), placed(self.token, folder))


class ElasticsearchReceiverEntry(ConnectionEntry):
    """an elasticsearch receiver: url, and what it writes with"""

    index: IndexName = "tocsin-incidents"
    changes: IndexName | None = None
    retention: Duration = 365 * 86400.0

    def settings(self, name: str, folder: Path) -> ElasticsearchSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        return ElasticsearchSettings(name, connection_of(self, folder), self.index, self.changes or "", self.retention)


class ReceiverEntry(Strict):
    """a receiver"""

    name: Text
    fallback: Text | None = None
    language: Annotated[str, one_of(LANGUAGES)] = ENGLISH.language
    terminal: TerminalEntry | None = None
    slack: SlackEntry | None = None
    webhook: WebhookEntry | None = None
    elasticsearch: ElasticsearchReceiverEntry | None = None
    pagerduty: PagerDutyEntry | None = None
    alertmanager: AlertmanagerEntry | None = None
    email: EmailEntry | None = None
    teams: TeamsEntry | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_one_type(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        types = [key for key in RECEIVER_TYPES if key in value]
        others = sorted(value.keys() - {"name", "fallback", "language", *RECEIVER_TYPES})
        if not types and others:
            raise finding_error(
                Code.NOT_ONE_OF, f"`{others[0]}` is not a type of receiver", did_you_mean(others[0], RECEIVER_TYPES)
            )
        if len(types) != 1:
            raise finding_error(Code.RECEIVER_SHAPE, "needs exactly one type", f"one of: {', '.join(RECEIVER_TYPES)}")
        return value


def receiver_settings(entry: ReceiverEntry, folder: Path) -> ReceiverSettings:
    """Return the settings of a receiver; paths of `file:` secrets are relative to `folder`."""
    typed = next(value for type_ in RECEIVER_TYPES if (value := getattr(entry, type_)) is not None)
    settings: ReceiverSettings = typed.settings(entry.name, folder)
    return settings


def default_receiver(receivers: Sequence[ReceiverSettings]) -> str:
    """Return the receiver for a configuration without a `route`: the first that keeps no record, or the first of all."""
    others = [receiver.name for receiver in receivers if not keeps_record(receiver)]
    return (others or [receivers[0].name])[0]


def keeps_record(settings: ReceiverSettings) -> bool:
    """Return whether a receiver is notified of every incident, whatever routes say (see Receiver.records)."""
    return isinstance(settings, ElasticsearchSettings)
