"""Serve the pages: listen on an address, know its host names, and run until a signal."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp

from engine.errors import ListenError, UsageError
from engine.web.connection import DEFAULT_LIMITS, KEEP_ALIVE_S, Connection, ConnectionLimits, OncePerMinute

BACKLOG = 128
END_WITHIN_S = 3
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Listener(Struct, frozen=True):
    """A listening socket and its address. Connections wait until `serve` accepts them."""

    socket: socket.socket
    host: str
    port: int

    @property
    def address(self) -> str:
        """The address of the pages for a browser on this machine."""
        return f"http://{_authority(self.host, self.port)}/"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return ip_address(str(self.socket.getsockname()[0]).partition("%")[0]).is_loopback

    def names(self, public_url: str = "") -> frozenset[str]:
        """Return the values of the Host header under which the pages are served, in lower case.

        Args:
            public_url: scheme and host of a proxy before the pages; empty for none.
        """
        local = {_authority(self.host, self.port), f"localhost:{self.port}"}
        with_default_port = local | {name.removesuffix(":80") for name in local if self.port == _DEFAULT_PORTS["http"]}
        return frozenset(name.lower() for name in with_default_port | _public_names(public_url))


def listen_on(host: str, port: int, public_url: str = "", has_auth: bool = False) -> Listener:
    """Listen on `host` and `port`; port 0 chooses a free one.

    Raises UsageError when other machines could connect, unless the pages know who they are (`has_auth`) and by which name they
    are reached; and ListenError when the address is in use or not of this machine.
    """
    hosts = [ip_address(str(address[0]).partition("%")[0]) for *_, address in _addresses(host, port)]
    if not has_auth and not all(each.is_loopback for each in hosts):
        raise UsageError(
            f"{_authority(host, port)} can be reached from other machines, and whoever reaches the pages reads what is in the"
            " logs; this needs web.auth. Without it listen on 127.0.0.1"
        )
    if not public_url and any(each.is_unspecified for each in hosts):
        raise UsageError(
            f"{_authority(host, port)} is every address of this machine, and the pages answer only to names that they know:"
            " set web.public_url to the address that people type"
        )
    return listen_anywhere(host, port)


def listen_anywhere(host: str, port: int, key: str = "web.listen") -> Listener:
    """Listen on `host` and `port`, which other machines may reach; port 0 chooses a free one.

    Args:
        key: where the configuration has the address, for messages.

    Raises ListenError when the address is in use or not of this machine.
    """
    family, kind, protocol, _, address = _addresses(host, port)[0]
    server_socket = socket.socket(family, kind, protocol)
    try:
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for the last connections
        server_socket.bind(address)
        server_socket.listen(BACKLOG)
    except OSError as error:
        server_socket.close()
        in_use = error.errno == errno.EADDRINUSE
        raise ListenError(_unavailable(_authority(host, port), key, error), in_use=in_use) from None
    return Listener(server_socket, host, int(server_socket.getsockname()[1]))


def _addresses(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise ListenError(f"{host}: not an address of this machine; name one with HOST:PORT") from None


def origins(listener: Listener, public_url: str = "") -> frozenset[str]:
    """Return scheme and host of the addresses under which browsers know the pages, in lower case."""
    public = {f"{urlsplit(public_url).scheme}://{name}" for name in _public_names(public_url)}
    return frozenset(origin.lower() for origin in (*(f"http://{name}" for name in listener.names()), *public))


def serve(app: ASGIApp, listener: Listener, limits: ConnectionLimits = DEFAULT_LIMITS) -> None:
    """Serve `app` at `listener` until SIGTERM or Ctrl-C; requests in progress get END_WITHIN_S to finish."""
    server = server_of(app, limits)
    with _ending_on_signals(server), _logging_once_per_minute("uvicorn.error", "asyncio"):
        server.run(sockets=[listener.socket])


@contextmanager
def serving(app: ASGIApp, listener: Listener, name: str) -> Iterator[None]:
    """Serve `app` at `listener` on a thread of this name while the body runs; requests get END_WITHIN_S to finish."""
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]}, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(END_WITHIN_S + 2)


def server_of(app: ASGIApp, limits: ConnectionLimits = DEFAULT_LIMITS) -> uvicorn.Server:
    """Return the uvicorn server of `app` with these limits."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=type("Served", (Connection,), {"limits": limits}),
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
def _logging_once_per_minute(*names: str) -> Iterator[None]:
    once_per_minute = OncePerMinute()
    for name in names:
        logging.getLogger(name).addFilter(once_per_minute)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(once_per_minute)


@contextmanager
def _ending_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Handle SIGTERM and SIGINT by ending `server` only: uvicorn raises the signal that ended it once more when it is done,
    which would end the process."""

    def end(*_: object) -> None:
        server.should_exit = True

    handlers = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _public_names(url: str) -> set[str]:
    """Return the values of the Host header for a public address: with its port, and without it when it is the default port."""
    if not url:
        return set()
    parts = urlsplit(url)
    default = _DEFAULT_PORTS.get(parts.scheme, 0)
    authority = _authority(parts.hostname or "", parts.port or default)
    return {authority, authority.removesuffix(f":{default}")}


def _unavailable(authority: str, key: str, error: OSError) -> str:
    remedy = f"choose another with {'--listen HOST:PORT or ' if key == 'web.listen' else ''}{key}"
    if error.errno == errno.EADDRINUSE:
        return f"{authority} is taken by another program (perhaps another `tocsin serve`); end it, or {remedy}"
    return f"{authority} cannot be listened on ({error.strerror}); {remedy}"
