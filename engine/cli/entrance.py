"""Build the way in to the pages from the configuration: `web.auth`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from engine.config import AuthSettings, WebSettings
from engine.errors import UsageError
from engine.web.access import READ_ONLY, BehindProxy, Entrance, SignedIn
from engine.web.audit import AuditFile, PageAudit, no_audit
from engine.web.passwords import Users
from engine.web.sessions import Sessions, checked_secret, stored_secret


@contextmanager
def entrance(web: WebSettings) -> Iterator[tuple[Entrance, PageAudit]]:
    """Yield who may see and change the pages, and the audit of that, which is closed at the end. Raises UsageError when users,
    secret or audit cannot be used."""
    if web.auth is None:
        yield READ_ONLY, no_audit
        return
    access = _access(web.auth, web.public_url.startswith("https://"))
    audit = AuditFile(web.auth.audit_file, lambda: datetime.now(UTC))
    try:
        yield access, audit
    finally:
        audit.close()


def _access(auth: AuthSettings, is_encrypted: bool) -> Entrance:
    if auth.users is None:
        return BehindProxy(auth.header, auth.proxies, Sessions(usable_secret(auth), auth.session_s, lambda _: ""))
    users = Users(auth.users)
    if not users.hashes():
        raise UsageError(f"{auth.users}: there is no user; tocsin web passwd NAME adds one")
    return SignedIn(users, Sessions(usable_secret(auth), auth.session_s, users.fingerprint), is_encrypted)


def usable_secret(auth: AuthSettings) -> str:
    """Return the secret that signs sessions, which is made where there is none. Raises UsageError when it cannot be used."""
    return stored_secret(auth.secret_file) if auth.secret is None else checked_secret(auth.secret.reveal(), str(auth.secret))
