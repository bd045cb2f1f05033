"""Somebody presses a button of a message while `tocsin run` goes on: the act is kept, and every later change of the incident
shows it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.model.acts import ActKind
from engine.model.incidents import Incident
from engine.store import Store
from tests.spark.test_run import GREETING, WITHIN_S, configured, tocsin, wait
from tests.standins.slack import TOKEN
from tests.standins.slack_socket import APP_TOKEN, SlackWithPeople

pytestmark = pytest.mark.timeout(600)  # of a machine that does much else; alone it takes half a minute


def asked(process: subprocess.Popen[str], store: Path, slack: SlackWithPeople, holds: Callable[[], object]) -> None:
    """Return when what Slack holds is as wanted; see tests.spark.test_run.wait for what ends the test otherwise."""
    wait(process, store, lambda _: bool(holds()))
    assert slack.whispers == [], "nobody was told that a press changed nothing"


def shown(message: dict[str, Any]) -> str:
    return str(message["blocks"])


def the_incident(store: Path) -> tuple[Incident, list[tuple[str, ActKind, str]]]:
    """Return the only incident as it is shown, and who did what to it by which way."""
    opened = Store.open(f"sqlite:///{store}")
    try:
        (id_,) = opened.ids()
        return opened.acts().incident(id_), [(act.by, act.kind, act.via) for act in opened.acts().of(id_)]
    finally:
        opened.close()


def test_whoever_acknowledged_is_kept_while_the_job_goes_on(tmp_path: Path) -> None:
    rules, log, store = tmp_path / "rules", tmp_path / "logs" / "app.log", tmp_path / "state.db"
    for folder in (rules, log.parent):
        folder.mkdir()
    log.write_text("")
    worse = GREETING.format(id="hello").replace(
        "severity: high", 'severity: high\nescalate: [{to: critical, when: "count >= 2"}]'
    )
    (rules / "hello.yml").write_text(worse)

    def write(second: int) -> None:
        with log.open("a") as out:
            out.write(f"[2024-01-01 10:00:{second:02},000] INFO hello Ann\n")

    with SlackWithPeople() as slack:
        config = configured(tmp_path, start="earliest")
        for name, token in (("token", TOKEN), ("app-token", APP_TOKEN)):
            (tmp_path / name).write_text(token)
        app = f"token: 'file:token', app_token: 'file:app-token', base_url: '{slack.base_url}'"
        text = config.read_text().replace("receiver: terminal", "receiver: ops")
        receivers = f"receivers:\n  - {{name: ops, slack: {{channel: '#kafka-ops', {app}}}}}\n"
        config.write_text(f"rules: [rules]\n{text}{receivers}")
        with tocsin("-c", config) as process:
            write(1)
            asked(process, store, slack, lambda: slack.parents() and slack.connections)
            (message,) = slack.parents()
            assert slack.answer(slack.click(message, "acknowledge", "jun"), WITHIN_S) is None
            incident, acts = the_incident(store)  # it was recorded before it was answered
            assert (incident.status, incident.owner, acts) == ("acknowledged", "jun", [("jun", ActKind.ACKNOWLEDGE, "slack")])
            asked(process, store, slack, lambda: "HIGH, acknowledged" in shown(message))
            write(2)  # the trouble goes on
            wait(process, store, lambda opened: [each.count for each in opened.incidents()] == [2])
            asked(process, store, slack, lambda: "CRITICAL, acknowledged" in shown(message))
            assert "jun" in shown(message)
            incident, acts = the_incident(store)
            assert (incident.status, incident.owner, incident.severity) == ("acknowledged", "jun", "critical")
            assert acts == [("jun", ActKind.ACKNOWLEDGE, "slack")]
            assert process.poll() is None, "the job goes on"
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, err
        assert len(slack.parents()) == 1
