"""Heartbeats: sent while all is well, withheld with a reason, and never with the address in a sentence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.metrics.heartbeat import beat


class Switch(ThreadingHTTPServer):
    """A dead man's switch that counts the requests and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.beats = 200, 0

    @property
    def url(self) -> str:
        """The secret address of the check."""
        return f"http://127.0.0.1:{self.server_address[1]}/ping/s3cret"


class _Handler(BaseHTTPRequestHandler):
    server: Switch

    def do_GET(self) -> None:
        self.server.beats += 1
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Rounds(threading.Event):
    """A stop that is set after some waits, so that no time passes."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self._rounds = rounds

    def wait(self, timeout: float | None = None) -> bool:
        self._rounds -= 1
        return self._rounds <= 0


@pytest.fixture
def switch() -> Iterator[Switch]:
    server = Switch()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_beat_is_sent_each_round(switch: Switch) -> None:
    sentences: list[str] = []
    beat(switch.url, list, 60, Rounds(3), sentences.append)
    assert (switch.beats, sentences) == (3, [])


def test_no_beat_while_a_part_hangs_which_is_said_once(switch: Switch) -> None:
    sentences: list[str] = []
    troubles = iter([["the job hangs"], ["the job hangs"], []])
    beat(switch.url, lambda: next(troubles), 60, Rounds(3), sentences.append)
    assert switch.beats == 1
    assert sentences == ["the heartbeat is withheld: the job hangs", "heartbeats go on"]


def test_a_refused_beat_is_said_without_the_address(switch: Switch) -> None:
    sentences: list[str] = []
    switch.status = 404
    beat(switch.url, list, 60, Rounds(1), sentences.append)
    assert sentences == ["the heartbeat was answered with 404"]


def test_a_switch_that_is_away_is_said_without_the_address(switch: Switch) -> None:
    sentences: list[str] = []
    beat("http://127.0.0.1:1/ping/s3cret", list, 60, Rounds(2), sentences.append)
    assert len(sentences) == 1
    assert sentences[0].startswith("the heartbeat could not be sent: ")
    assert "s3cret" not in sentences[0]
