"""The address of an incident store: an SQLite file, or a PostgreSQL database whose password is a reference.

Imports msgspec and engine.secrets only, so a configuration can be read without the packages of a database.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from engine.secrets import Secret

SQLITE, POSTGRESQL = "sqlite", "postgresql+psycopg"
# behind the first colon, up to the last @: a user may have an @ or a / too (`user@server`). Behind an @, a port, a database and
# a question mark are no password
_PASSWORD = re.compile(r"(://(?:[^:/@]*:|[^:?]*:(?!\d*/[^/?@]*\?))).*@", re.DOTALL)
_SECRET_OPTIONS = ("password", "sslpassword")
_SECRET_OPTION = re.compile(rf"([?&](?:{'|'.join(_SECRET_OPTIONS)})=)[^&]*")


class StoreAddress(Struct, frozen=True):
    """The URL of a store, and the reference to the password that belongs to it; None where it needs none.

    str() is the URL as it may be printed.
    """

    url: str
    password: Secret | None = None

    def __str__(self) -> str:
        """Return the URL without a password."""
        return without_password(self.url)

    @property
    def path(self) -> Path | None:
        """The file of an SQLite store; None for any other store, and for one in memory."""
        scheme, _, path = self.url.partition(":///")
        return Path(path.partition("?")[0]) if scheme == SQLITE and path and not path.startswith(":") else None


def without_password(url: str) -> str:
    """Return `url` with stars in place of a password."""
    return _SECRET_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1***@", url))


def has_password(url: str) -> bool:
    """Return whether a password is written into `url`."""
    return without_password(url) != url


def is_store_url(url: str) -> bool:
    """Return whether `url` names an SQLite file or a PostgreSQL database."""
    try:
        parts = urlsplit(url)
        names_a_port = parts.port != 0
        parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        return False
    if parts.scheme == SQLITE:
        return url.startswith("sqlite:///") and len(url) > len("sqlite:///")
    return parts.scheme == POSTGRESQL and names_a_port and len(parts.path) > 1 and url.isprintable() and " " not in url
