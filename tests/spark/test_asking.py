"""`tocsin run` over a server that is asked: a failed task is an incident from its status alone, until it runs again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.cli.intake import Intake
from engine.model.incidents import Incident
from engine.pipeline import replay
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.test_run import finished, kept, tocsin, wait
from tests.unit.connectors.answering import Answer, Asked, answering
from tests.unit.connectors.connect.test_rest import Cluster
from tests.unit.connectors.connect.test_statuses import part, status

STORY = Path(__file__).parents[2] / "samples" / "1-silent-cdc-connector"
FAILED = json.loads((STORY / "rest-status.json").read_text(encoding="utf-8"))
RUNNING = status(FAILED["name"], part())
WITHIN_S = 240


def configured(folder: Path, url: str) -> Path:
    path = folder / "tocsin.yml"
    path.write_text(
        f"sources:\n  - {{type: connect, url: '{url}', every: 5s, record: asked.log, labels: {{cluster: prod}}}}\n"
        "route: {receiver: terminal, group_wait: 0s}\nstore: sqlite:///state.db\nspark: {trigger: 200ms}\n"
    )
    return path


def statuses(store: Store) -> dict[str, str]:
    """Return the status of the incident of each rule."""
    return {incident.rule: incident.status for incident in store.incidents()}


def told(incident: Incident) -> tuple[object, ...]:
    """Return what a run and a scan of its record must agree on."""
    times = (incident.first_seen, incident.resolved_at)
    return incident.rule, incident.status, dict(incident.labels), incident.why, incident.cause, times


def test_a_round_is_the_input_of_a_bounded_run(tmp_path: Path) -> None:
    with answering(Cluster(FAILED)) as server:
        code, out, err = finished("-c", configured(tmp_path, server.url), "--once")
    assert code == 1, err
    assert [(incident.rule, incident.status) for incident in kept(tmp_path / "state.db")] == [
        ("connect-record-too-large-client", "open")
    ]
    assert f"{server.url}/connectors/cdc-source/tasks/0/restart" in out
    (scanned,) = replay(Intake([str(tmp_path / "asked.log")], {"cluster": "prod"}).lines(), plan())
    assert (scanned.rule, scanned.status, scanned.labels["task"]) == ("connect-record-too-large-client", "open", "0")


@contextmanager
def asking(folder: Path, answer: Callable[[Asked], Answer]) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield a run that asks a server with these answers, after its first batch, and its store; end the run."""
    store = folder / "state.db"
    with answering(answer) as server, tocsin("-c", configured(folder, server.url)) as process:
        wait(process, store, lambda seen: seen.batches() >= 1 and (folder / "asked.log").exists())
        yield process, store
        process.terminate()
        _, err = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, err


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_incident_opens_and_ends_by_the_status_and_a_scan_of_the_record_gives_the_same(tmp_path: Path) -> None:
    cluster = Cluster(RUNNING)
    with asking(tmp_path, cluster) as (process, store):
        cluster.statuses[FAILED["name"]] = FAILED
        wait(process, store, lambda seen: statuses(seen) == {"connect-record-too-large-client": "open"})
        cluster.statuses[FAILED["name"]] = RUNNING
        wait(process, store, lambda seen: statuses(seen) == {"connect-record-too-large-client": "resolved"})
    scanned = {each.id: each for each in replay(Intake([str(tmp_path / "asked.log")], {"cluster": "prod"}).lines(), plan())}
    assert [told(each) for each in scanned.values()] == [told(each) for each in kept(store)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_silence_of_the_server_is_an_incident_of_its_own(tmp_path: Path) -> None:
    cluster, away = Cluster(RUNNING), list[bool]()

    def answer(request: Asked) -> Answer:
        return Answer({"message": "starting"}, 503) if away else cluster(request)

    with asking(tmp_path, answer) as (process, store):
        away.append(True)
        wait(process, store, lambda seen: statuses(seen) == {"asking-unanswered": "open"})
        away.clear()
        wait(process, store, lambda seen: statuses(seen) == {"asking-unanswered": "resolved"})
