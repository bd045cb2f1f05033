"""Those who are slow, idle or speak no HTTP keep nobody else from the pages; every byte that is answered bears the headers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine.web.connection import ConnectionLimits, OncePerMinute
from engine.web.guard import HEADERS, Guard
from engine.web.server import Listener, listen_on, server_of

GET = "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"
LONG = 30_000_000  # more than sockets hold by themselves
WITHIN_S = 30.0

BEGUN = (
    b"",
    b"GET / HTTP/1.1\r\nHost: a\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
)
NO_HTTP = (
    b"\x16\x03\x01\x00\xa5\x01\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 70_000,
    b"GET / HTTP/1.1\r\na b: c\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
)


def answer(request: Request) -> Response:
    return PlainTextResponse("x" * (LONG if request.url.path == "/long" else 2))


@contextmanager
def running(patience: ConnectionLimits) -> Iterator[Listener]:
    listener = listen_on("127.0.0.1", 0)
    app = Guard(Starlette(routes=[Route("/", answer), Route("/long", answer)]), listener.names())
    server = server_of(app, patience)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]})
    thread.start()
    try:
        yield listener
    finally:
        server.should_exit = True
        thread.join()
        listener.socket.close()


@pytest.fixture
def opened() -> Iterator[Callable[[Listener], socket.socket]]:
    with ExitStack() as stack:

        def connect(listener: Listener) -> socket.socket:
            return stack.enter_context(socket.create_connection((listener.host, listener.port), WITHIN_S))

        yield connect


def asked(connection: socket.socket, listener: Listener, path: str = "/") -> None:
    connection.sendall(GET.format(host=f"127.0.0.1:{listener.port}").replace("GET /", f"GET {path}", 1).encode())


def rest(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes; empty when it cuts the connection."""
    said = b""
    try:
        while piece := connection.recv(1 << 16):
            said += piece
    except ConnectionResetError:
        pass
    return said


Open = Callable[[Listener], socket.socket]


def test_idle_connections_make_room_for_who_asks(opened: Open) -> None:
    with running(ConnectionLimits(connections=8)) as listener:
        idle = [opened(listener) for _ in range(20)]
        for connection in idle:
            connection.sendall(b"GET / HTTP/1.1\r\nHo")
        reader = opened(listener)
        asked(reader, listener)
        assert reader.recv(100).startswith(b"HTTP/1.1 200")
        assert rest(idle[0]) == b""


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab"]
)
def test_a_request_that_never_ends_is_waited_for_so_long_and_no_longer(begun: bytes, opened: Open) -> None:
    with running(ConnectionLimits(request_s=0.3)) as listener:
        connection = opened(listener)
        connection.sendall(begun)
        rest(connection)


def test_a_second_request_has_its_time_too_and_no_more(opened: Open) -> None:
    with running(ConnectionLimits(request_s=0.3)) as listener:
        connection = opened(listener)
        asked(connection, listener)
        assert b"200" in connection.recv(1000)
        connection.sendall(b"G")
        rest(connection)


@pytest.fixture
def closing() -> Iterator[threading.Event]:
    """What is set once the pages say that they closed a connection."""
    said, log = threading.Event(), logging.getLogger("uvicorn.error")
    handler = logging.Handler()
    handler.emit = lambda record: said.set() if "was closed" in record.getMessage() else None  # type: ignore[method-assign]
    log.addHandler(handler)
    yield said
    log.removeHandler(handler)


def test_who_does_not_read_is_left_after_a_while(opened: Open, closing: threading.Event) -> None:
    with running(ConnectionLimits(answer_s=0.5, connections=3)) as listener:
        slow = opened(listener)
        asked(slow, listener, "/long")
        others = [opened(listener) for _ in range(2)]
        for other in others:
            asked(other, listener)
            assert b"200" in other.recv(1000)
        assert closing.wait(WITHIN_S), "it is still connected"
        assert len(rest(slow)) < LONG


@pytest.mark.parametrize("said", NO_HTTP, ids=["tls", "version", "long", "header", "host"])
def test_what_is_no_http_is_answered_with_the_security_headers(said: bytes, opened: Open) -> None:
    with running(ConnectionLimits()) as listener:
        connection = opened(listener)
        connection.sendall(said)
        head, _, body = rest(connection).decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400")
    lines = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= lines.items()
    assert lines["cache-control"] == "no-store"
    assert body


def test_a_connection_that_breaks_off_is_no_matter(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    with running(ConnectionLimits()) as listener:
        for _ in range(5):
            broken = opened(listener)
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            asked(broken, listener, "/long")
            broken.close()
        reader = opened(listener)
        asked(reader, listener)
        assert reader.recv(100).startswith(b"HTTP/1.1 200")
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_one_kind_of_message_is_told_once_a_minute_with_how_many_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("engine.web.connection.time.monotonic", lambda: clock[0])
    told, once = list[str](), OncePerMinute()
    for second in range(150):
        clock[0] = float(second)
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid HTTP request received.", (), None)
        if once.filter(record):
            told.append(record.getMessage())
    assert told == [
        "Invalid HTTP request received.",
        "Invalid HTTP request received. (and 59 more like it before)",
        "Invalid HTTP request received. (and 59 more like it before)",
    ]
