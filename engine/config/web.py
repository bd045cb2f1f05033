"""The `web` section of tocsin.yml: schema and conversion to settings."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import Field, model_validator

from engine.config.faults import finding_error, validated_by
from engine.config.secrets import SecretText, placed
from engine.dsl.codes import Code
from engine.dsl.schema import Duration, Strict, Text, one_of
from engine.language import LANGUAGES
from engine.model.addresses import Network
from engine.secrets import Secret

LISTEN = "127.0.0.1:8320"
SESSION_S = 12 * 3600.0
LEAST_SESSION_S = 60.0
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of HTTP (RFC 9110, 5.6.2)


class AuthSettings(Struct, frozen=True):
    """Who may see and change the pages: the users of a file, or whoever the proxy at `proxies` names in the header.

    `secret` signs sessions and forms; None: it is made and stored in `secret_file`. `audit_file`: where sign-ins, refusals and
    acts are recorded.
    """

    users: Path | None
    header: str
    proxies: tuple[Network, ...]
    session_s: float
    secret: Secret | None
    secret_file: Path
    audit_file: Path


class WebSettings(Struct, frozen=True):
    """The address on which the pages are served. `public_url`: scheme and host for links to them, without a final slash; or
    empty. `auth` None: everybody on this machine may see the pages and nobody may change anything. `with_run`: `tocsin run`
    serves them too. `language`: that of every reader; empty: the reader's browser chooses."""

    host: str
    port: int
    public_url: str = ""
    auth: AuthSettings | None = None
    with_run: bool = False
    language: str = ""


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


def _check_header(name: str) -> None:
    if not _HEADER.fullmatch(name):
        raise ValueError


Listen = Annotated[str, validated_by(listen_address, Code.BAD_LISTEN, "HOST:PORT", f"for example: {LISTEN}")]
PublicUrl = Annotated[
    str,
    validated_by(_check_origin, Code.BAD_PUBLIC_URL, "an address of scheme and host", "for example: https://tocsin.example"),
]


Networks = Annotated[
    list[
        Annotated[str, validated_by(ip_network, Code.BAD_AUTH, "an address or a network", "for example: 10.0.0.5, 10.1.0.0/16")]
    ],
    Field(min_length=1),
]
HeaderName = Annotated[str, validated_by(_check_header, Code.BAD_AUTH, "the name of a header", "for example: X-Forwarded-User")]


class ProxyEntry(Strict):
    """a proxy that people sign in to: the header in which it names them, and its addresses"""

    header: HeaderName
    addresses: Networks


class AuthEntry(Strict):
    """who may see and change the pages: users or proxy"""

    users: Text | None = None
    proxy: ProxyEntry | None = None
    session: Duration = SESSION_S
    secret: SecretText | None = None
    audit: Text | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> AuthEntry:
        if (self.users is None) is (self.proxy is None):
            help = "users: a file that `tocsin web passwd NAME` writes; proxy: {header: ..., addresses: [...]}"
            raise finding_error(Code.BAD_AUTH, "needs either `users` or `proxy`", help)
        if self.session < LEAST_SESSION_S:
            raise finding_error(Code.BAD_AUTH, "a session lasts a minute at least", "session: 12h")
        return self


class WebEntry(Strict):
    """the pages: listen, public_url, language and auth"""

    listen: Listen = LISTEN
    public_url: PublicUrl | None = None
    language: Annotated[str, one_of(LANGUAGES)] | None = None
    auth: AuthEntry | None = None


def web_settings(entry: WebEntry, folder: Path, store: Path | None) -> WebSettings:
    """Return the settings of the section.

    Args:
        folder: that of the configuration; relative paths are relative to it.
        store: the file of the store, None for a server; what is made for the pages is beside it, else in `folder`.
    """
    host, port = listen_address(entry.listen)
    return WebSettings(
        host,
        port,
        (entry.public_url or "").rstrip("/"),
        None if entry.auth is None else _auth(entry.auth, folder, store),
        with_run="listen" in entry.model_fields_set,
        language=entry.language or "",
    )


def _auth(entry: AuthEntry, folder: Path, store: Path | None) -> AuthSettings:
    beside = store or folder / "tocsin"
    return AuthSettings(
        users=None if entry.users is None else folder / entry.users,
        header="" if entry.proxy is None else entry.proxy.header,
        proxies=tuple(ip_network(address) for address in entry.proxy.addresses) if entry.proxy is not None else (),
        session_s=entry.session,
        secret=placed(entry.secret, folder),
        secret_file=beside.with_suffix(".session-secret"),
        audit_file=beside.with_suffix(".audit.jsonl") if entry.audit is None else folder / entry.audit,
    )
