"""`tocsin run` over a server that is asked: a failed task is an incident from its status alone, until it runs again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.intake import Intake
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


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_incident_opens_and_ends_by_the_status_and_silence_of_the_server_is_another(tmp_path: Path) -> None:
    cluster, away = Cluster(RUNNING), list[bool]()

    def answer(request: Asked) -> Answer:
        return Answer({"message": "starting"}, 503) if away else cluster(request)

    store = tmp_path / "state.db"
    with answering(answer) as server, tocsin("-c", configured(tmp_path, server.url)) as process:
        wait(process, store, lambda seen: seen.batches() >= 1 and (tmp_path / "asked.log").exists())
        cluster.statuses[FAILED["name"]] = FAILED
        wait(process, store, lambda seen: statuses(seen) == {"connect-record-too-large-client": "open"})
        cluster.statuses[FAILED["name"]] = RUNNING
        wait(process, store, lambda seen: statuses(seen) == {"connect-record-too-large-client": "resolved"})
        away.append(True)
        wait(process, store, lambda seen: statuses(seen).get("asking-unanswered") == "open")
        away.clear()
        wait(process, store, lambda seen: statuses(seen).get("asking-unanswered") == "resolved")
        process.terminate()
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    assert {incident.rule for incident in kept(store)} == {"connect-record-too-large-client", "asking-unanswered"}
