"""The `web` section of tocsin.yml: schema and conversion to settings."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import model_validator

from engine.config.faults import unavailable_error, validated_by
from engine.dsl.codes import Code
from engine.dsl.schema import Strict

LISTEN = "127.0.0.1:8320"


class WebSettings(Struct, frozen=True):
    """The address on which the pages are served. `public_url`: scheme and host for links to them, without a final slash; or
    empty."""

    host: str
    port: int
    public_url: str = ""


def listen_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; an IPv6 host is in brackets, and port 0 lets the system choose.

    Raises ValueError for other text.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare and bare == host) or not port.isascii() or not port.isdecimal():
        raise ValueError(f"{text} is not HOST:PORT")
    if int(port) > 65535:
        raise ValueError(f"{port} is not a port")
    return bare, int(port)


def _check_origin(url: str) -> None:
    parts = urlsplit(url)
    plain = parts.scheme in ("http", "https") and parts.hostname and parts.path in ("", "/")
    if not plain or parts.query or parts.fragment or "@" in parts.netloc or parts.port == 0:
        raise ValueError


Listen = Annotated[str, validated_by(listen_address, Code.BAD_LISTEN, "HOST:PORT", f"for example: {LISTEN}")]
PublicUrl = Annotated[
    str,
    validated_by(_check_origin, Code.BAD_PUBLIC_URL, "an address of scheme and host", "for example: https://tocsin.example"),
]


class WebEntry(Strict):
    """the pages: listen and public_url"""

    listen: Listen = LISTEN
    public_url: PublicUrl | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_no_auth(cls, value: Any) -> Any:
        if isinstance(value, dict) and "auth" in value:
            raise unavailable_error("`auth` is", "leave it out and listen on this machine only, for example 127.0.0.1:8320")
        return value


def web_settings(entry: WebEntry) -> WebSettings:
    """Return the settings of the section."""
    host, port = listen_address(entry.listen)
    return WebSettings(host, port, (entry.public_url or "").rstrip("/"))
