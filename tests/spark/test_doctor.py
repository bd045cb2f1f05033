"""`tocsin doctor` and `tocsin prove` beside a run, as its operator uses them: one start of Spark for both."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.model.proofs import Proof
from engine.store import Store
from tests.spark.test_run import WITHIN_S, tocsin, wait

CONFIG = """\
sources:
  - {type: files, paths: [logs], timezone: Asia/Seoul, labels: {cluster: prod}}
receivers:
  - {name: pager, webhook: {url: "http://127.0.0.1:9/"}}
  - {name: screen, terminal: {}}
route: {receiver: pager, group_wait: 30s}
notify_storm: 1
store: sqlite:///state.db
spark: {trigger: 200ms}
"""


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> tuple[int, str]:
        """Run a command of tocsin in this process; return its exit code and what it printed."""
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out + err

    return run


def test_a_run_is_looked_at_and_proved_and_nobody_else_is_told(tmp_path: Path, command: Command) -> None:
    logs, config, path = tmp_path / "logs", tmp_path / "tocsin.yml", tmp_path / "state.db"
    logs.mkdir()
    (logs / "server.log").write_text("[2022-10-05 12:00:00,000] INFO hello (kafka.server.KafkaServer)\n")
    config.write_text(CONFIG)
    code, text = command("prove", "-c", config)
    assert (code, "STOPPED" in text, [*logs.iterdir()]) == (3, True, [logs / "server.log"])
    with tocsin("-c", config) as process:
        wait(process, path, lambda store: store.statuses().notifier() is not None and store.batches() > 1)
        code, text = command("doctor", "-c", config)
        assert (code, "all is well" in text) == (0, True), text
        assert f"process {process.pid}: tocsin " in text
        code, text = command("prove", "-c", config, "--receiver", "screen", "--format", "json")
        proved = json.loads(text)
        assert (code, proved["stopped"]) == (0, None), proved
        assert [stage["name"] for stage in proved["stages"]] == ["put", "judged", "told", "resolved"]
        assert command("prove", "-c", config, "--quiet") == (0, "")
        # a line that somebody else writes is told to nobody
        now = datetime.now(UTC)
        with (logs / "tocsin-prove.log").open("a") as log:
            log.write(f"{Proof('abcdefghijkl', 'screen', now).line(now)}\n")
        wait(process, path, lambda store: store.proofs().incident("abcdefghijkl") is not None)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert "Traceback" not in err
    store = Store.open(f"sqlite:///{path}")
    told = {receiver for receiver, _ in store.outbox().entries()}
    states = [incident.status for incident in store.incidents()]
    losses = store.losses()
    store.close()
    assert (told, states, losses) == ({"screen"}, ["resolved", "resolved", "open"], [])
    assert "no trouble, a line of `tocsin prove` came through" in out
    assert command("doctor", "-c", config)[0] == 3
