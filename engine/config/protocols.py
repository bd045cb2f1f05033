"""Receivers of type pagerduty, alertmanager, email and teams in tocsin.yml: schema and settings."""

from __future__ import annotations

import re
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BeforeValidator, Field, model_validator

from engine.config.faults import finding_error, validated_by
from engine.config.secrets import Address, ProtectedAddress, SecretText, placed, placed_address
from engine.dsl.codes import Code
from engine.dsl.schema import Duration, Strict, Text
from engine.secrets import Secret

PAGERDUTY_API = "https://events.pagerduty.com/"
SMTP_PORTS = {"starttls": 587, "tls": 465, "none": 25}  # by the kind of encryption
LEAST_TIMEOUT_S = 60.0  # of an alert in Alertmanager: it is sent again within a third of that


class PagerDutySettings(Struct, frozen=True):
    """A service of PagerDuty, by its integration key."""

    name: str
    routing_key: Secret
    base_url: str
    type: str = "pagerduty"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return f"by {self.routing_key}"


class AlertmanagerSettings(Struct, frozen=True):
    """An Alertmanager; `user` may be empty. An alert ends `resolve_timeout_s` after it was last sent."""

    name: str
    url: str | Secret
    token: Secret | None
    user: str
    password: Secret | None
    resolve_timeout_s: float
    type: str = "alertmanager"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return str(self.url)


class EmailSettings(Struct, frozen=True):
    """Mailboxes, by the mail server `host`:`port`; `tls` is a key of SMTP_PORTS, `user` may be empty."""

    name: str
    recipients: tuple[str, ...]
    sender: str
    host: str
    port: int
    tls: str
    user: str
    password: Secret | None
    type: str = "email"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return f"{', '.join(self.recipients)} by {self.host}:{self.port}"


class TeamsSettings(Struct, frozen=True):
    """A channel of Microsoft Teams, by the webhook of a workflow."""

    name: str
    webhook_url: Secret
    type: str = "teams"

    @property
    def destination(self) -> str:
        """Where messages go, without secrets."""
        return f"by {self.webhook_url}"


def _check_mailbox(value: str) -> None:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", parseaddr(value)[1]) or not value.isprintable() or "," in value:
        raise ValueError(value)


def _mailboxes(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _server(value: Any) -> Any:
    address = re.fullmatch(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(:(?P<port>[0-9]{1,5}))?", str(value))
    if address is None or not 0 < int(address["port"] or 1) < 65_536:
        raise finding_error(Code.BAD_ADDRESS, f"`{value}` is not the address of a mail server", "for example: mail.example:587")
    return value


def _encryption(value: Any) -> Any:
    if value not in SMTP_PORTS:
        raise finding_error(Code.BAD_OPTION, f"`{value}` is not a kind of encryption", "write starttls, tls or none")
    return value


Mailbox = Annotated[
    str,
    validated_by(
        _check_mailbox, Code.BAD_ADDRESS, "a mail address", "for example: oncall@kafka.example, or a list of addresses"
    ),
]


class PagerDutyEntry(Strict):
    """a pagerduty receiver: routing_key, and base_url outside of the US"""

    routing_key: SecretText
    base_url: ProtectedAddress = PAGERDUTY_API

    def settings(self, name: str, folder: Path) -> PagerDutySettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        return PagerDutySettings(name, _reference(self.routing_key, folder), self.base_url)


class AlertmanagerEntry(Strict):
    """an alertmanager receiver: url, and token, or user and password, if needed"""

    url: Address
    token: SecretText | None = None
    user: Text | None = None
    password: SecretText | None = None
    resolve_timeout: Duration = 900.0

    @model_validator(mode="after")
    def _is_complete(self) -> AlertmanagerEntry:
        if (self.user is None) is not (self.password is None) or (self.user and self.token):
            raise finding_error(Code.RECEIVER_SHAPE, "needs either `token`, or `user` and `password`, or none of them")
        if self.resolve_timeout < LEAST_TIMEOUT_S:
            raise finding_error(Code.BAD_OPTION, "`resolve_timeout` is too short", "write 1m or more; 15m unless set")
        return self

    def settings(self, name: str, folder: Path) -> AlertmanagerSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        credentials = (placed(self.token, folder), self.user or "", placed(self.password, folder))
        return AlertmanagerSettings(name, placed_address(self.url, folder), *credentials, self.resolve_timeout)


class EmailEntry(Strict):
    """an email receiver: to, from and smtp, and user and password if needed"""

    to: Annotated[list[Mailbox], BeforeValidator(_mailboxes)]
    from_: Mailbox = Field(alias="from")
    smtp: Annotated[str, BeforeValidator(_server)]
    tls: Annotated[str, BeforeValidator(_encryption)] = "starttls"
    user: Text | None = None
    password: SecretText | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> EmailEntry:
        if (self.user is None) is not (self.password is None):
            raise finding_error(Code.RECEIVER_SHAPE, "needs both `user` and `password`, or none of them")
        if not self.to:
            raise finding_error(Code.RECEIVER_SHAPE, "`to` needs at least one address")
        return self

    def settings(self, name: str, folder: Path) -> EmailSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        host, _, port = self.smtp.rpartition(":") if re.search(r":[0-9]+$", self.smtp) else (self.smtp, "", "")
        server = (host.strip("[]"), int(port or SMTP_PORTS[self.tls]), self.tls)
        return EmailSettings(name, tuple(self.to), self.from_, *server, self.user or "", placed(self.password, folder))


class TeamsEntry(Strict):
    """a teams receiver: webhook_url of a workflow"""

    webhook_url: SecretText

    def settings(self, name: str, folder: Path) -> TeamsSettings:
        """Return the settings; paths of `file:` secrets are relative to `folder`."""
        return TeamsSettings(name, _reference(self.webhook_url, folder))


def _reference(secret: Secret, folder: Path) -> Secret:
    return placed(secret, folder) or secret
