"""Guard the pages: only configured host names are answered, and every response has the security headers."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # without any, browsers state no origin with forms
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
STATIC = "/static/"


class Guard:
    """Wraps the whole application, including its error pages.

    A page of another site can make a browser send requests to 127.0.0.1 under that site's name and read the response (DNS
    rebinding), but it cannot choose the Host header. So a request whose Host is not one of `hosts` is answered with 400.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _harden(MutableHeaders(scope=message), scope["path"])
            await send(message)

        app = self._app if self._answers(Headers(scope=scope)) else self._refusal()
        await app(scope, receive, guarded)

    def _answers(self, headers: Headers) -> bool:
        hosts = headers.getlist("host")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts

    def _refusal(self) -> PlainTextResponse:
        names = ", ".join(sorted(self._hosts))
        problem = "The pages are not served under this host name. They answer to: "
        return PlainTextResponse(f"{problem}{names}. Another one is set by web.public_url in tocsin.yml.\n", status_code=400)


def _harden(headers: MutableHeaders, path: str) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    headers["Cache-Control"] = "no-cache" if path.startswith(STATIC) else "no-store"
