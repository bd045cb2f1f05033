"""Where the pages are served: on which address, under which names, and until when."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp

from engine.errors import ListenError, UsageError
from engine.web.connection import KEEP_ALIVE_S, PATIENCE, Connection, OncePerMinute, Patience

BACKLOG = 128
END_WITHIN_S = 3
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Door(Struct, frozen=True):
    """An address that is listened on: connections wait until `serve` answers them."""

    socket: socket.socket
    host: str
    port: int

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the pages."""
        return f"http://{_authority(self.host, self.port)}/"

    def names(self, public_url: str = "") -> frozenset[str]:
        """Return the values of the Host header that mean these pages; `public_url` is scheme and host, or empty."""
        own = {_authority(self.host, self.port), f"localhost:{self.port}"}
        here = own | {name.removesuffix(":80") for name in own if self.port == _DEFAULT_PORTS["http"]}
        return frozenset(name.lower() for name in here | _public(public_url))


def open_door(host: str, port: int) -> Door:
    """Listen on `host` and `port` (0: one that is free).

    Raises UsageError when others than this machine could connect, and ListenError when the address cannot be had.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise ListenError(f"{host}: not an address of this machine; name one with --listen HOST:PORT") from None
    if not all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found):
        raise UsageError(
            f"{_authority(host, port)} can be reached from other machines, and whoever reaches the pages reads what is in the"
            " logs; this needs web.auth, which is not available in this version. Listen on 127.0.0.1, and let a proxy that"
            " asks for a password stand before it"
        )
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for the last connections
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ListenError(_unavailable(_authority(host, port), error)) from None
    return Door(listening, host, int(listening.getsockname()[1]))


def serve(app: ASGIApp, door: Door, patience: Patience = PATIENCE) -> None:
    """Answer requests at `door` until SIGTERM or Ctrl-C; those at work are given END_WITHIN_S to finish."""
    server = server_of(app, patience)
    with _ending(server), _told_once_a_minute("uvicorn.error", "asyncio"):
        server.run(sockets=[door.socket])


def server_of(app: ASGIApp, patience: Patience = PATIENCE) -> uvicorn.Server:
    """Return what answers for `app`, with that much patience for who is slow."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=type("Served", (Connection,), {"patience": patience}),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=END_WITHIN_S,
        )
    )


@contextmanager
def _told_once_a_minute(*names: str) -> Iterator[None]:
    added = OncePerMinute()
    for name in names:
        logging.getLogger(name).addFilter(added)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(added)


@contextmanager
def _ending(server: uvicorn.Server) -> Iterator[None]:
    """Let the signals that end `server` end nothing else: uvicorn raises them once more when it is done."""

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _public(url: str) -> set[str]:
    """Return the Host values of a public address: with its port, and without it where that is the scheme's own."""
    if not url:
        return set()
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme, 0)
    named = _authority(parts.hostname or "", parts.port or default)
    return {named, named.removesuffix(f":{default}")}


def _unavailable(authority: str, error: OSError) -> str:
    choose = "choose another with --listen HOST:PORT or web.listen"
    if error.errno == errno.EADDRINUSE:
        return f"{authority} is taken by another program (perhaps another `tocsin serve`); end it, or {choose}"
    return f"{authority} cannot be listened on ({error.strerror}); {choose}"
