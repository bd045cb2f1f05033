"""Sessions of the pages: who is signed in, in a signed cookie, and tokens that prove that a form came from a page.

A cookie cannot be made or changed without the secret. A new one is made at each sign-in, whatever the browser sent before. It
ends with its time, with the password of its user, and when its user signs out.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from msgspec import Struct

from engine.errors import UsageError
from engine.rights import make_folder

SECRET_BYTES = 32
LEAST_SECRET = 16  # characters
BROWSER_S = 365 * 86400.0  # how long a browser is known as one in which a user has signed in


class Session(Struct, frozen=True):
    """A session: its user, its own id, and the fingerprint of the user's password when it began."""

    user: str
    id: str
    fingerprint: str


class Sessions:
    """Makes and reads the cookies and tokens of one secret. May be used by several threads.

    Args:
        lifetime_s: how long a session lasts.
        fingerprint: returns what changes with the password of a user; empty for one that there is not.
    """

    def __init__(self, secret: str, lifetime_s: float, fingerprint: Callable[[str], str]) -> None:
        self.lifetime_s = lifetime_s
        self._fingerprint = fingerprint
        self._cookies, self._tokens, self._browsers = (
            _serializer(secret, salt) for salt in ("tocsin session", "tocsin form", "tocsin browser")
        )
        self._ended: dict[str, float] = {}  # id of a session -> when it would have ended by itself
        self._lock = threading.Lock()

    def begin(self, user: str) -> str:
        """Return the cookie of a new session."""
        return str(self._cookies.dumps([user, secrets.token_hex(16), self._fingerprint(user)]))

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None when it is no cookie of ours, has ended, or its user has another password."""
        parts = _loaded(self._cookies, cookie, self.lifetime_s)
        if not (isinstance(parts, list) and len(parts) == 3 and all(isinstance(part, str) for part in parts)):
            return None
        session = Session(*parts)
        with self._lock:
            if session.id in self._ended:
                return None
        is_valid = session.fingerprint and secrets.compare_digest(session.fingerprint, self._fingerprint(session.user))
        return session if is_valid else None

    def end(self, session: Session) -> None:
        """End a session before its time, in this process."""
        now = time.time()
        with self._lock:
            self._ended = {id_: until for id_, until in self._ended.items() if until > now}
            self._ended[session.id] = now + self.lifetime_s

    def browser(self, user: str) -> str:
        """Return a cookie by which a browser is known as one in which `user` has signed in."""
        return str(self._browsers.dumps([user, secrets.token_hex(16)]))

    def browser_id(self, cookie: str, user: str) -> str:
        """Return the id of a browser by that cookie; empty when `user` has not signed in there within BROWSER_S."""
        parts = _loaded(self._browsers, cookie, BROWSER_S)
        is_theirs = isinstance(parts, list) and len(parts) == 2 and parts[0] == user
        return str(parts[1]) if is_theirs else ""

    def token(self, subject: str) -> str:
        """Return a token for the forms of `subject`: a session's id, or a name where there are no sessions."""
        return str(self._tokens.dumps(subject))

    def is_token(self, token: str, subject: str) -> bool:
        """Return whether `token` was made for the forms of `subject`, not longer ago than a session lasts."""
        return bool(subject) and _loaded(self._tokens, token, self.lifetime_s) == subject


def stored_secret(path: Path) -> str:
    """Return the secret in the file at `path`, which is made for this user alone when it is missing. Raises UsageError."""
    try:
        make_folder(path.parent)
        try:
            number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(number, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(SECRET_BYTES))
        if path.stat().st_mode & 0o077:
            raise UsageError(f"{path}: other users of this machine can read it, and so sign in as anybody; remove it")
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"{path}: the secret of the sessions cannot be made or read ({reason})") from None
    return checked_secret(secret, str(path))


def checked_secret(secret: str, place: str) -> str:
    """Return `secret` unchanged. Raises UsageError, with its `place` only, when it is too short to be one."""
    if len(secret) < LEAST_SECRET:
        raise UsageError(f"{place}: the secret of the sessions has fewer than {LEAST_SECRET} characters")
    return secret


def _serializer(secret: str, salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt=salt, signer_kwargs={"digest_method": hashlib.sha256, "key_derivation": "hmac"})


def _loaded(serializer: URLSafeTimedSerializer, text: str, lifetime_s: float) -> Any:
    try:
        return serializer.loads(text, max_age=int(lifetime_s))
    except BadData:
        return None
