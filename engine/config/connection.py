"""The connection to a server by HTTP: the keys that the sources and receivers of several types share in tocsin.yml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, model_validator

from engine.config.faults import finding_error
from engine.config.secrets import SecretText, placed
from engine.dsl.codes import Code
from engine.dsl.schema import Flag, Strict, Text
from engine.model.addresses import is_web_address, may_carry_secrets
from engine.secrets import Secret


def _addresses(value: Any) -> Any:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, list) or not urls or not all(_is_address(url) for url in urls):
        help = "for example: https://es.example:9200, or a list of the addresses of several nodes"
        raise finding_error(Code.BAD_ADDRESS, "must be an http address without a password", help)
    return urls


def _is_address(url: Any) -> bool:
    return isinstance(url, str) and is_web_address(url) and "@" not in url


class EndpointEntry(Strict):
    """the addresses of a server, and user and password"""

    credentials: ClassVar[tuple[frozenset[str], ...]] = (frozenset(("user", "password")), frozenset())
    needs: ClassVar[str] = "needs both `user` and `password`, or neither"

    url: Annotated[list[str], BeforeValidator(_addresses, json_schema_input_type=str | list[str])]
    user: Text | None = None
    password: SecretText | None = None
    ca: SecretText | None = None
    unprotected: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _has_credentials(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() - cls.model_fields.keys():
            return value  # an unknown key is reported, and may be meant for one that is missing
        if value.keys() & frozenset[str]().union(*cls.credentials) not in cls.credentials:
            help = "leave them out if the server needs no credentials"
            raise finding_error(Code.RECEIVER_SHAPE, cls.needs, help)
        return value

    @model_validator(mode="after")
    def _is_protected(self) -> EndpointEntry:
        open_urls = [url for url in self.url if not may_carry_secrets(url)]
        if open_urls and self._has_secret() and not self.unprotected:
            help = "write https://..., or add unprotected: true if the network between is your own"
            raise finding_error(Code.BAD_ADDRESS, f"`{open_urls[0]}` is not an address that may be sent a secret", help)
        return self

    def _has_secret(self) -> bool:
        return self.password is not None


class ConnectionEntry(EndpointEntry):
    """a connection to Elasticsearch: url, and api_key or user and password"""

    credentials: ClassVar[tuple[frozenset[str], ...]] = (*EndpointEntry.credentials, frozenset(("api_key",)))
    needs: ClassVar[str] = "needs either `api_key`, or `user` and `password`"

    api_key: SecretText | None = None

    def _has_secret(self) -> bool:
        return self.api_key is not None or super()._has_secret()


def connection_of(entry: ConnectionEntry, folder: Path) -> Mapping[str, Any]:
    """Return the fields of an ElasticsearchConnection as JSON; paths of `file:` secrets are relative to `folder`."""
    return {**endpoint_of(entry, folder), "api_key": _reference(entry.api_key, folder)}


def endpoint_of(entry: EndpointEntry, folder: Path) -> Mapping[str, Any]:
    """Return the addresses and credentials of a server as JSON; paths of `file:` secrets are relative to `folder`."""
    return {
        "urls": list(entry.url),
        "user": entry.user or "",
        "password": _reference(entry.password, folder),
        "ca": _reference(entry.ca, folder),
        "unprotected": entry.unprotected,
    }


def _reference(secret: Secret | None, folder: Path) -> str:
    return "" if secret is None else str(placed(secret, folder))
