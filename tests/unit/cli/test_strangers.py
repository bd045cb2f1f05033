"""Logs that can have nothing to do with each other are judged apart; what may have stays together."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.main import main
from engine.cli.strangers import APART, SourceTraces, cluster_ids, collections_of

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
ONE, TWO = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
SAMPLES = Path(__file__).parents[3] / "samples"


def trace(source: str, first_day: float | None = None, last_day: float = 0.0, *clusters: str) -> SourceTraces:
    if first_day is None:
        return SourceTraces(source, clusters=frozenset(clusters))
    first, last = (BEGIN + timedelta(days=day) for day in (first_day, max(first_day, last_day)))
    return SourceTraces(source, first, last, frozenset(clusters))


def groups(*traces: SourceTraces) -> dict[str, list[str]]:
    return {collection.name: list(collection.sources) for collection in collections_of(traces)}


def test_brokers_of_one_time_stay_together() -> None:
    assert list(groups(trace("a/1/server.log", 0, 1), trace("a/2/server.log", 1, 9), trace("a/3/server.log", 15)).values()) == [
        ["a/1/server.log", "a/2/server.log", "a/3/server.log"]
    ]


def test_weeks_without_a_line_divide_and_undated_files_stay_with_their_folder() -> None:
    assert groups(
        trace("a/new/server.log", 100), trace("a/old/server.log", 0), trace("a/old/dump.txt"), trace("a/notes.txt")
    ) == {"2024-01-01": ["a/notes.txt", "a/old/dump.txt", "a/old/server.log"], "new": ["a/new/server.log"]}


def test_other_cluster_ids_divide_even_at_the_same_time() -> None:
    prod = (trace("x/prod/broker.log", 0, 1, ONE), trace("x/prod/connect.log", 0, 1), trace("x/prod/b2.log", 0, 1, ONE))
    test = (trace("x/test/broker.log", 0, 1, TWO), trace("x/test/client/app.log", 0, 1))
    assert groups(*prod, *test) == {
        "prod": ["x/prod/b2.log", "x/prod/broker.log", "x/prod/connect.log"],
        "test": ["x/test/broker.log", "x/test/client/app.log"],
    }


def test_a_client_of_two_clusters_joins_them_and_so_does_a_file_beside_both() -> None:
    both = (trace("x/a/broker.log", 0, 1, ONE), trace("x/b/broker.log", 0, 1, TWO))
    assert len(groups(*both)) == 2
    assert len(groups(*both, trace("x/c/mirror.log", 0, 1, ONE, TWO))) == 1
    assert len(groups(*both, trace("x/app.log", 0, 1))) == 1


def test_names_are_unique_and_say_something() -> None:
    same_folder = (trace("a/1.log", 0, 1, ONE), trace("a/2.log", 0, 1, TWO))
    names = [*groups(*same_folder, trace("c/3.log", 90, 91, ONE), trace("b/1.log", 200, 201, ONE))]
    assert names == [ONE, TWO, "c", "b"]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 10), st.sampled_from(["", ONE, TWO])), max_size=8))
def test_every_source_is_in_one_collection_and_neighbours_in_time_stay(files: list[tuple[int, int, str]]) -> None:
    traces = [trace(f"f/{n}/s.log", day, day + long, *([id_] if id_ else [])) for n, (day, long, id_) in enumerate(files)]
    collections = collections_of(traces)
    assert sorted(source for each in collections for source in each.sources) == sorted(each.source for each in traces)
    place = {source: number for number, each in enumerate(collections) for source in each.sources}
    for one in traces:
        for other in traces:
            if one.clusters == other.clusters and one.first <= other.first <= one.last + APART:
                assert place[one.source] == place[other.source]


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b"[Producer clientId=p] Cluster ID: AAAAAAAAAAAAAAAAAAAAAA (o.a.k.c.Metadata)", [ONE]),
        (b"Cluster ID = AAAAAAAAAAAAAAAAAAAAAA (kafka.server.KafkaServer)", [ONE]),
        (b"clusterId=AAAAAAAAAAAAAAAAAAAAAA, nodeId=1", [ONE]),
        (b"Kafka cluster ID: AAAAAAAAAAAAAAAAAAAAAA", [ONE]),
        (b"The Cluster ID AAAAAAAAAAAAAAAAAAAAAA doesn't match stored clusterId Some(BBBBBBBBBBBBBBBBBBBBBB)", [ONE, TWO]),
        (b"Cluster ID: AAAAAAAAAAAAAAAAAAAAAAA is too long, cluster id: short", []),
        (b"no cluster here", []),
    ],
)
def test_the_ids_that_a_line_names(line: bytes, ids: list[str]) -> None:
    assert sorted(cluster_ids(line)) == ids


def scanned(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, object]:
    main(["scan", "--format", "json", *map(str, arguments)])
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_stories_together_give_what_each_gives_alone(capsys: pytest.CaptureFixture[str]) -> None:
    stories = sorted(path for path in SAMPLES.iterdir() if path.name[0].isdigit())
    together = scanned(capsys, *stories)
    alone = [incident["rule"] for story in stories for incident in scanned(capsys, story)["incidents"]]
    assert sorted(incident["rule"] for incident in together["incidents"]) == sorted(alone)
    assert any("judged apart" in note and "4-silent-broker" in note for note in together["notes"])
    (silent,) = [incident for incident in together["incidents"] if incident["rule"] == "broker-silent"]
    assert silent["labels"] == {"broker": "1", "cluster": "4-silent-broker"}


def test_a_cluster_that_is_named_and_a_roster_keep_all_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, year in (("a", 2020), ("b", 2024)):
        (tmp_path / name).mkdir()
        line = f"[{year}-02-03 02:05:02,285] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
        (tmp_path / name / "server.log").write_text(line * 5)
    notes = [scanned(capsys, tmp_path, *more)["notes"] for more in ((), ("--label", "cluster=prod"), ("--roster", "1"))]
    assert ["judged apart" in " ".join(each) for each in notes] == [True, False, False]
