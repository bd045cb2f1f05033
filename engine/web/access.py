"""Who may see and change the pages: everybody on this machine may see them, or users sign in, or a proxy names them.

Whoever is named may see and change everything; there are no roles.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Protocol

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine.model.acts import MOST_NAME
from engine.model.addresses import Network
from engine.model.visible import visible
from engine.model.words import worded
from engine.web.attempts import LoginAttempts
from engine.web.passwords import Users
from engine.web.sessions import BROWSER_S, Session, Sessions


class Visitor(Struct, frozen=True):
    """Who sent a request. `user` is empty for somebody without a name, who may see and not change. `subject` is what the tokens
    of forms are bound to; `session` is None where there are none."""

    user: str = ""
    subject: str = ""
    session: Session | None = None


ANYBODY = Visitor()


class Entrance(Protocol):
    """The way in to the pages."""

    @property
    def signs_in(self) -> bool:
        """Whether users sign in on a page of ours."""

    def visitor(self, request: Request) -> Visitor | None:
        """Return who sent a request; None when a user must sign in first. Raises HTTPException for others who may not."""

    def token(self, visitor: Visitor) -> str:
        """Return a token for the forms of a visitor; empty for one who may not change anything."""

    def is_token(self, token: str, visitor: Visitor) -> bool:
        """Return whether a form with this token came from a page for this visitor."""


class ReadOnly:
    """Everybody may see the pages and nobody may change anything: without users nothing else is safe."""

    signs_in = False

    def visitor(self, request: Request) -> Visitor:
        """Return a visitor without a name."""
        return ANYBODY

    def token(self, visitor: Visitor) -> str:
        """Return no token."""
        return ""

    def is_token(self, token: str, visitor: Visitor) -> bool:
        """Return False."""
        return False


class SignedIn:
    """Users sign in with a password.

    Args:
        is_encrypted: browsers reach the pages by https only, so a cookie must never travel otherwise.
    """

    signs_in = True

    def __init__(self, users: Users, sessions: Sessions, is_encrypted: bool) -> None:
        self.users, self.sessions, self._is_encrypted = users, sessions, is_encrypted
        self.attempts = LoginAttempts()
        self._cookie = "__Host-tocsin" if is_encrypted else "tocsin"

    def visitor(self, request: Request) -> Visitor | None:
        """Return the user of the request's session; None without one."""
        session = self.sessions.read(request.cookies.get(self._cookie, ""))
        return None if session is None else Visitor(session.user, session.id, session)

    def token(self, visitor: Visitor) -> str:
        """Return a token for the forms of a session."""
        return self.sessions.token(visitor.subject)

    def is_token(self, token: str, visitor: Visitor) -> bool:
        """Return whether the token was made for this session."""
        return self.sessions.is_token(token, visitor.subject)

    def wait_s(self, name: str, request: Request) -> float:
        """Return the seconds until `name` may try to sign in from where a request came from; 0 when it may now."""
        return self.attempts.wait_s(name, client_address(request), time.monotonic(), self._browser(name, request))

    def signs_in_with(self, name: str, password: str, request: Request) -> bool:
        """Return whether the password is that of the user; one that is not counts as a failure."""
        address, browser = client_address(request), self._browser(name, request)
        self.attempts.count(name, address, time.monotonic(), browser)  # before: many may be under way at once
        is_right = self.users.verify(name, password)
        if is_right:
            self.attempts.succeeded(name, address, browser)
        return is_right

    def begin(self, response: Response, user: str) -> None:
        """Begin a new session of `user` with a response, whatever the browser has sent."""
        self._set_cookie(response, self._cookie, self.sessions.begin(user), self.sessions.lifetime_s)
        self._set_cookie(response, f"{self._cookie}-browser", self.sessions.browser(user), BROWSER_S)

    def end(self, response: Response, session: Session) -> None:
        """End a session, here and in the browser."""
        self.sessions.end(session)
        self._set_cookie(response, self._cookie, "", 0)

    def _browser(self, name: str, request: Request) -> str:
        return self.sessions.browser_id(request.cookies.get(f"{self._cookie}-browser", ""), name)

    def _set_cookie(self, response: Response, name: str, value: str, lifetime_s: float) -> None:
        is_encrypted = self._is_encrypted
        response.set_cookie(name, value, int(lifetime_s), path="/", secure=is_encrypted, httponly=True, samesite="lax")


class BehindProxy:
    """A proxy that people sign in to names the user in a header. Only requests from its addresses are answered.

    Args:
        header: the name of the header.
        networks: the addresses of the proxy.
        sessions: makes the tokens of forms.
    """

    signs_in = False

    def __init__(self, header: str, networks: Sequence[Network], sessions: Sessions) -> None:
        self._header, self._networks, self._sessions = header, networks, sessions

    def visitor(self, request: Request) -> Visitor:
        """Return the user that the proxy names. Raises HTTPException for a request from elsewhere, or that names nobody."""
        if not is_within(client_address(request), self._networks):
            raise HTTPException(403, worded("These pages are served through their proxy only."))
        user = proxy_user(request.headers.getlist(self._header))
        if not user:
            raise HTTPException(403, worded("The proxy of these pages did not say who you are; sign in there."))
        return Visitor(user, user)

    def token(self, visitor: Visitor) -> str:
        """Return a token for the forms of a user."""
        return self._sessions.token(visitor.subject)

    def is_token(self, token: str, visitor: Visitor) -> bool:
        """Return whether the token was made for this user."""
        return self._sessions.is_token(token, visitor.subject)


READ_ONLY = ReadOnly()


def client_address(request: Request) -> str:
    """Return the address that a request came from: of the connection, whatever its headers say."""
    return request.client.host if request.client is not None else ""


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address belongs to one of the networks; an IPv4 address in IPv6 form is that IPv4 address."""
    try:
        host = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(host, IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    return any(host in network for network in networks)


def proxy_user(values: Sequence[str]) -> str:
    """Return the user that the values of a proxy's header name; empty when there is not exactly one legible name. A comma is
    in none: proxies join the values of a header by it, so the first could be from the browser."""
    name = values[0].strip() if len(values) == 1 else ""
    return name if 0 < len(name) <= MOST_NAME and "," not in name and visible(name) == name else ""


def is_same_origin(headers: Mapping[str, str], origins: Collection[str]) -> bool:
    """Return whether a request that changes something came from a page of ours. Browsers send `Origin` with every such request,
    and no page can set it."""
    return headers.get("origin", "").lower() in origins
