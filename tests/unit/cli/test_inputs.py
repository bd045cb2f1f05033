"""The sources of a configuration are opened; what tocsin writes itself is no input, wherever the configuration puts it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from connectors.kafka_cluster import admin
from engine.cli.inputs import checks, open_input, surroundings, unreadable
from engine.config import load
from engine.model.records import SPEAKS_FOR
from tests.containers import make_docker_log, make_pod_log
from tests.standins.journal import Journal
from tests.unit.connectors.answering import Answer, Asked, answering
from tests.unit.connectors.connect.test_rest import Cluster
from tests.unit.connectors.connect.test_statuses import part, status


@pytest.mark.parametrize("once", [True, False])
def test_a_source_that_is_the_folder_of_everything_does_not_follow_store_and_checkpoint(tmp_path: Path, once: bool) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources:\n  - {type: files, paths: ['.']}\nstore: sqlite:///state/tocsin.db\n")
    for name in ("app.log", "state/tocsin.db", "state/tocsin.db-wal", "state/tocsin.checkpoint/spark.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a line\n")
    settings = load(config, checks())
    source = open_input(settings.sources[0], once, surroundings(settings))
    assert source.contents == (str(tmp_path / "app.log"),)
    files = source.specs[0].open()
    assert [Path(name).name for name in files.latest(files.initial())["streams"]] == ["app.log"]


def elasticsearch(url: str, more: str = "") -> str:
    return (
        f"sources:\n  - {{type: elasticsearch, url: '{url}', indices: ['logs-*', 'app-*'], labels: {{cluster: prod}}{more}}}\n"
    )


def answered(request: Asked) -> Answer:
    """Answer as a cluster with one index; a query that it cannot read is refused."""
    path = request.path.partition("?")[0]
    if path == "/":
        return Answer({"version": {"number": "9.5.3"}})
    if path.endswith("_settings"):
        return Answer({"logs-1": {"settings": {"index.uuid": "u1"}}} if "logs-" in path else {})
    if path.endswith("_search") and b"nonsense" in request.body:
        return Answer({"error": {"type": "parsing_exception", "reason": "unknown query [nonsense]"}}, 400)
    return Answer({"hits": {"total": {"value": 7}}} if path.endswith("_search") else {})


def test_how_indices_are_read_is_said_for_each_pattern(tmp_path: Path) -> None:
    with answering(answered) as server:
        (tmp_path / "tocsin.yml").write_text(elasticsearch(server.url))
        (source,) = load(tmp_path / "tocsin.yml", checks()).sources
        input = open_input(source, once=False)
    assert [spec.name for spec in input.specs] == [f"elasticsearch prod {server.url} {each}" for each in ("logs-*", "app-*")]
    assert {spec.opener for spec in input.specs} == {"connectors.elasticsearch:open_source"}
    assert input.summary == f"2 patterns on {server.url}, up to 14 documents in a first run"
    assert input.contents[0] == "logs-*: 1 index of Elasticsearch 9.5.3, up to 7 documents in a first run"
    assert input.contents[1] == "app-*: 0 indices of Elasticsearch 9.5.3, up to 7 documents in a first run"
    assert input.reading[0] == "logs-*: read by _seq_no (no late document is missed)"


def test_a_query_that_no_cluster_can_read_is_an_error_and_nothing_to_wait_for(tmp_path: Path) -> None:
    with answering(answered) as server:
        (tmp_path / "tocsin.yml").write_text(elasticsearch(server.url, ", query: {nonsense: {a: b}}"))
        (source,) = load(tmp_path / "tocsin.yml", checks()).sources
        input = open_input(source, once=False)
    assert input.specs == ()
    assert "unknown query [nonsense]" in str(input.errors[0])


def test_a_cluster_that_is_away_is_waited_for_by_a_run_without_end(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text(elasticsearch("http://127.0.0.1:9"))
    (source,) = load(tmp_path / "tocsin.yml", checks()).sources
    assert [len(open_input(source, once).specs) for once in (False, True)] == [2, 0]


def test_a_connect_cluster_is_looked_at_and_its_answers_have_a_place_of_their_own(tmp_path: Path) -> None:
    with answering(Cluster(status("cdc", part(), part()))) as server:
        config = tmp_path / "tocsin.yml"
        config.write_text(f"sources:\n  - {{type: connect, url: {server.url}, record: asked.log, labels: {{cluster: prod}}}}\n")
        settings = load(config, checks())
        around = surroundings(settings)
        (input,) = (open_input(source, False, around) for source in settings.sources)
    assert (input.summary, input.contents) == (
        f"{server.url}, asked every 30 s",
        ("1 connector, 2 tasks of Kafka Connect 4.3.1",),
    )
    (spec,) = input.specs
    assert spec.name == f"connect prod {server.url}"
    assert spec.settings["labels"] == {"cluster": "prod", SPEAKS_FOR: "connect"}
    assert Path(str(spec.settings["folder"])).parent == settings.checkpoint / "answers"
    assert str(tmp_path / "asked.log") in around.own_paths
    assert spec.open().initial() == {"at": 0}


def test_a_connect_cluster_that_is_away_is_waited_for_by_a_run_without_end(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text("sources:\n  - {type: connect, url: 'http://127.0.0.1:9'}\n")
    (source,) = load(tmp_path / "tocsin.yml", checks()).sources
    inputs = [open_input(source, once) for once in (False, True)]
    assert [len(input.specs) for input in inputs] == [1, 0]
    assert str(inputs[0].errors[0]) == "Kafka Connect at 127.0.0.1:9 cannot be reached (ConnectionRefusedError)"


def test_a_kafka_cluster_that_does_not_answer_is_waited_for_and_may_speak_for_its_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "BOOTSTRAP_MS", 200)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        (tmp_path / "tocsin.yml").write_text(f"sources:\n  - {{type: kafka-cluster, bootstrap_servers: '{place}'}}\n")
        (source,) = load(tmp_path / "tocsin.yml", checks()).sources
        input = open_input(source, once=False)
    assert str(input.errors[0]).startswith(f"no broker of {place} answers")
    (spec,) = input.specs
    assert spec.settings["labels"] == {"cluster": "default", SPEAKS_FOR: "broker"}
    assert spec.open().initial() == {"at": 0}
    assert unreadable([input], once=False) == []


PRESETS = """\
sources:
  - {type: docker, root: docker, containers: [kafka]}
  - {type: kubernetes, root: pods, namespaces: [kafka]}
"""


def test_presets_list_the_logs_of_the_chosen_containers(tmp_path: Path) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(PRESETS)
    of_docker = make_docker_log(tmp_path / "docker" / "containers", "kafka")
    make_docker_log(tmp_path / "docker" / "containers", "other")
    of_a_pod = make_pod_log(tmp_path / "pods", "kafka-0", "kafka")
    make_pod_log(tmp_path / "pods", "other-0", "other", "other")
    for log in (of_docker, of_a_pod):
        log.write_text("one\n")
    sources = [open_input(source, once=True) for source in load(config, checks()).sources]
    assert [source.contents for source in sources] == [(str(of_docker),), (str(of_a_pod),)]
    places = (tmp_path / "docker" / "containers", tmp_path / "pods")
    assert [source.summary for source in sources] == [f"1 file now in {place}" for place in places]
    assert [source.errors for source in sources] == [(), ()]
    assert len({spec.name for source in sources for spec in source.specs}) == 2
    for source in sources:
        assert len(source.specs[0].open().latest({})["streams"]) == 1


def test_two_selections_of_one_place_are_two_sources(tmp_path: Path) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(
        "sources:\n  - {type: docker, containers: [a]}\n  - {type: docker, containers: [b]}\n  - {type: docker}\n"
    )
    sources = [open_input(source, once=False) for source in load(config, checks()).sources]
    assert len({spec.name for source in sources for spec in source.specs}) == 3


def test_a_journal_that_cannot_be_read_is_said_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.write("one")
    config = tmp_path / "tocsin.yml"
    config.write_text(f"sources:\n  - {{type: journald, root: {journal.folder}}}\n")
    (settings,) = load(config, checks()).sources
    monkeypatch.setenv("PATH", f"{journal.bin}{os.pathsep}{os.environ['PATH']}")
    source = open_input(settings, once=True)
    assert source.contents == (f"the journal of {journal.folder}, newest entry 2022-10-05 17:05:39 UTC",)
    assert len(source.specs) == 1
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = open_input(settings, once=True)
    assert (missing.specs, missing.contents) == ((), ())
    assert "there is no program journalctl here" in str(missing.errors[0])
    waiting = open_input(settings, once=False)
    assert len(waiting.specs) == 1
    assert unreadable([waiting], once=False) == list(waiting.errors)
