"""`tocsin serve` as its user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from engine.cli.main import main
from engine.errors import StoreAway
from engine.store import Store, outage
from engine.store.store import BatchId
from engine.store_address import StoreAddress
from engine.web.server import listen_on
from tests.unit.cli.incidents import TOO_LARGE

ROOT = Path(__file__).parents[4]
WITHIN_S = 60


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose store holds one incident."""
    path = tmp_path / "tocsin.yml"
    path.write_text(
        "sources:\n  - {type: files, paths: [logs]}\nstore: sqlite:///state/tocsin.db\nweb: {listen: '127.0.0.1:0'}\n"
    )
    store = Store.open(f"sqlite:///{tmp_path}/state/tocsin.db")
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents([TOO_LARGE])
    store.close()
    return path


@contextmanager
def serving(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the command; nothing of it is left behind."""
    command = [sys.executable, "-m", "engine.cli.main", "serve", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(config: Path, ending: signal.Signals) -> None:
    with serving("-c", config) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", said)
        assert TOO_LARGE.title in httpx.get(f"{address}incidents/{TOO_LARGE.id}", timeout=WITHIN_S, trust_env=False).text
        assert httpx.get(f"{address}static/tocsin.css", timeout=WITHIN_S, trust_env=False).headers["content-type"] == (
            "text/css; charset=utf-8"
        )
        process.send_signal(ending)
        _, complaints = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, complaints) == (0, "")


def test_a_store_that_is_away_at_the_start_is_waited_for(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, opening = list[int](), Store.open

    def away_at_first(address: StoreAddress) -> Store:
        attempts.append(1)
        if len(attempts) < 3:
            raise StoreAway("the server is away")
        return opening(address)

    monkeypatch.setattr(Store, "open", away_at_first)
    monkeypatch.setattr(outage, "PAUSE_S", 0.01)
    monkeypatch.setattr("engine.cli.commands.serve.serve", lambda _, listener: listener.socket.close())
    assert main(["serve", "-c", str(config)]) == 0
    assert len(attempts) == 3


def test_a_taken_port_is_one_sentence(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listener = listen_on("127.0.0.1", 0)
    with listener.socket:
        assert main(["serve", "-c", str(config), "--listen", f"127.0.0.1:{listener.port}"]) == 3
    assert capsys.readouterr().err.startswith(f"tocsin: 127.0.0.1:{listener.port} is taken by another program")


@pytest.mark.parametrize(
    ("listen", "sentence"),
    [
        ("8320", "--listen takes HOST:PORT such as 127.0.0.1:8320, not: 8320"),
        ("0.0.0.0:8320", "0.0.0.0:8320 can be reached from other machines"),
    ],
)
def test_an_address_that_cannot_be_is_a_usage_error(
    config: Path, capsys: pytest.CaptureFixture[str], listen: str, sentence: str
) -> None:
    assert main(["serve", "-c", str(config), "--listen", listen]) == 2
    assert sentence in capsys.readouterr().err
