"""The receivers of tocsin.yml: their structure, and the settings it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BeforeValidator, model_validator

from engine.config.faults import unavailable, wrong
from engine.config.secrets import Secret, parse_secret
from engine.dsl.codes import Code
from engine.dsl.report import did_you_mean
from engine.dsl.schema import Strict, Text
from engine.model.addresses import is_web_address, may_carry_secrets

RECEIVER_TYPES = ("terminal", "slack", "webhook")
COMING_RECEIVERS = ("email",)
SLACK_API = "https://slack.com/api/"


class TerminalSettings(Struct, frozen=True):
    """A receiver that prints."""

    name: str


class SlackSettings(Struct, frozen=True):
    """A Slack channel: by `token` (then with `channel`) or by `webhook_url`, which has its channel in itself."""

    name: str
    channel: str
    token: Secret | None
    webhook_url: Secret | None
    base_url: str


class WebhookSettings(Struct, frozen=True):
    """An address that JSON is posted to; `url` is text, or a secret when it is one itself."""

    name: str
    url: str | Secret
    token: Secret | None


ReceiverSettings = TerminalSettings | SlackSettings | WebhookSettings


def _secret(value: Any) -> Any:
    try:
        return parse_secret(value)
    except (ValueError, AttributeError):
        help = "put it into an environment variable or a file, and write env:NAME or file:PATH here"
        raise wrong(Code.BAD_SECRET, "must not hold the secret itself", help) from None


def _protected(value: Any) -> Any:
    if not isinstance(value, str) or not may_carry_secrets(value):
        raise wrong(Code.BAD_ADDRESS, f"`{value}` is no address for a secret", "write https://..., or http on localhost")
    return value


def _address(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("env:", "file:")):
        return _secret(value)
    if not isinstance(value, str) or not is_web_address(value) or "@" in value:
        help = "write https://..., or env:NAME or file:PATH when the address holds a password"
        raise wrong(Code.BAD_ADDRESS, "must be an http address without a password", help)
    return value


SecretText = Annotated[Any, BeforeValidator(_secret)]
ProtectedAddress = Annotated[str, BeforeValidator(_protected)]
Address = Annotated[Any, BeforeValidator(_address)]


class TerminalEntry(Strict):
    """what the terminal receiver can be told (nothing yet)"""


class SlackEntry(Strict):
    """what a slack receiver needs: channel and token, or webhook_url"""

    channel: Text | None = None
    token: SecretText | None = None
    webhook_url: SecretText | None = None
    base_url: ProtectedAddress = SLACK_API

    @model_validator(mode="before")
    @classmethod
    def _is_one_of_two(cls, value: Any) -> Any:
        given = {"channel", "token", "webhook_url"} & value.keys() if isinstance(value, dict) else {"webhook_url"}
        if given not in ({"channel", "token"}, {"webhook_url"}):
            raise wrong(Code.RECEIVER_SHAPE, "needs either `channel` and `token`, or `webhook_url`", "docs/notifications.md")
        return value


class WebhookEntry(Strict):
    """what a webhook receiver needs: url"""

    url: Address
    token: SecretText | None = None


class ReceiverEntry(Strict):
    """a receiver"""

    name: Text
    fallback: Text | None = None
    terminal: TerminalEntry | None = None
    slack: SlackEntry | None = None
    webhook: WebhookEntry | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_one_type(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if coming := [key for key in COMING_RECEIVERS if key in value]:
            raise unavailable(f"receivers of type {coming[0]} are", f"use one of: {', '.join(RECEIVER_TYPES)}")
        known = [key for key in RECEIVER_TYPES if key in value]
        others = sorted(value.keys() - {"name", "fallback", *RECEIVER_TYPES})
        if not known and others:
            raise wrong(Code.NOT_ONE_OF, f"`{others[0]}` is no type of receiver", did_you_mean(others[0], RECEIVER_TYPES))
        if len(known) != 1:
            raise wrong(Code.RECEIVER_SHAPE, "needs exactly one type", f"one of: {', '.join(RECEIVER_TYPES)}")
        return value


def receiver_settings(entry: ReceiverEntry, folder: Path) -> ReceiverSettings:
    """Return what an entry says; files of secrets are relative to `folder`."""
    if entry.slack is not None:
        slack = entry.slack
        secrets = (_placed(slack.token, folder), _placed(slack.webhook_url, folder))
        return SlackSettings(entry.name, slack.channel or "", *secrets, slack.base_url)
    if entry.webhook is not None:
        url = entry.webhook.url
        address = _placed(url, folder) if isinstance(url, Secret) else url
        return WebhookSettings(entry.name, address or "", _placed(entry.webhook.token, folder))
    return TerminalSettings(entry.name)


def _placed(secret: Secret | None, folder: Path) -> Secret | None:
    if secret is None or secret.kind != "file":
        return secret
    return replace(secret, name=str(folder / secret.name))
