"""One suite for every Source: what the Spark adapter relies on, whatever the system behind it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from connectors import connect, files, journald, memory
from connectors.connect.statuses import lines_of
from engine.codec import dumps
from engine.ports import Chunk, Offset, Source
from tests.containers import docker_row, make_docker_log, make_pod_log, pod_row
from tests.standins.journal import Journal
from tests.unit.connectors.answering import answering
from tests.unit.connectors.connect.test_rest import PLUGINS, SERVER, Cluster
from tests.unit.connectors.connect.test_statuses import part, status

STREAMS = {"a.log": [f"a{n}" for n in range(10)], "b.log": [f"b{n}" for n in range(3)], "c.log": []}
ANSWERING = ExitStack()  # the servers of the present test
AT = datetime(2022, 10, 5, 8, tzinfo=UTC)


class Kind(Struct, frozen=True):
    """A kind of source over `streams`: how it is opened, what it names a stream, and what a row of it holds."""

    open: Callable[[Mapping[str, Any]], Source]
    settings: Mapping[str, Any]
    name: Callable[[Chunk], str]
    text: Callable[[str], str]
    labels: frozenset[str] = frozenset()
    streams: Mapping[str, Sequence[str]] = field(default_factory=lambda: STREAMS)

    @property
    def everything(self) -> dict[str, str]:
        return {name: "".join(f"{line}\n" for line in lines) for name, lines in self.streams.items() if lines}


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def memory_kind(folder: Path) -> Kind:
    return Kind(memory.open_source, {"streams": STREAMS}, _last_name, str)


def files_kind(folder: Path) -> Kind:
    for name, lines in STREAMS.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return Kind(files.open_source, {"paths": [str(folder)]}, _last_name, str)


def docker_kind(folder: Path) -> Kind:
    for name, lines in STREAMS.items():
        make_docker_log(folder, name).write_text("".join(f"{docker_row(line, AT)}\n" for line in lines))
    make_docker_log(folder, "sidecar").write_text(f"{docker_row('noise', AT)}\n")
    settings = {"paths": [str(folder)], "select": {"container": ["*.log"]}}
    given = frozenset(("container", "image"))
    return Kind(files.open_source, settings, _container, lambda row: json.loads(row)["log"].rstrip("\n"), given)


def kubernetes_kind(folder: Path) -> Kind:
    for name, lines in STREAMS.items():
        rows = "".join(f"{pod_row(line, AT)}\n" for line in lines)
        make_pod_log(folder, name.removesuffix(".log"), "kafka").write_text(rows)
    make_pod_log(folder, "a", "kafka", "kube-system").write_text(f"{pod_row('noise', AT)}\n")
    settings = {"paths": [str(folder)], "select": {"namespace": ["!kube-*"]}}
    given = frozenset(("namespace", "pod", "container"))
    return Kind(
        files.open_source, settings, lambda chunk: f"{chunk.labels['pod']}.log", lambda row: row.partition(" F ")[2], given
    )


def journald_kind(folder: Path) -> Kind:
    journal = Journal(folder)
    for number in range(max(map(len, STREAMS.values()))):
        for name, lines in STREAMS.items():
            for line in lines[number : number + 1]:
                journal.write(line, unit=name)
    os.environ["PATH"] = f"{journal.bin}{os.pathsep}{os.environ['PATH']}"
    given = frozenset(("host", "unit"))
    settings = {"root": str(journal.folder)}
    return Kind(
        journald.open_source, settings, lambda chunk: chunk.labels["unit"], lambda row: json.loads(row)["MESSAGE"], given
    )


def connect_kind(folder: Path) -> Kind:
    """A server that is asked: what it tells in one round is one stream."""
    cluster = Cluster(*(status(f"connector-{n}", part()) for n in range(8)))
    url = ANSWERING.enter_context(answering(cluster)).url
    topics = [dumps({name: {"topics": sorted(cluster.topics or ())}}) for name in sorted(cluster.statuses)]
    lines = [dumps(SERVER), *lines_of([*cluster.statuses.values()], None, whole=True), *topics, dumps(PLUGINS)]
    settings = {"connection": {"urls": [url]}, "folder": str(folder / "answers"), "every_s": 30.0, "final": True}
    return Kind(
        connect.open_source, settings, lambda chunk: "asked", lambda row: row.partition(" ")[2], streams={"asked": lines}
    )


KINDS = {
    "connect": connect_kind,
    "memory": memory_kind,
    "files": files_kind,
    "docker": docker_kind,
    "kubernetes": kubernetes_kind,
    "journald": journald_kind,
}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # restored afterwards
    with ANSWERING:
        yield KINDS[request.param](tmp_path)


@pytest.fixture
def source(kind: Kind) -> Iterator[Source]:
    opened = kind.open(through_json({**kind.settings, "labels": {"cluster": "prod"}}))
    yield opened
    if isinstance(opened, journald.JournaldSource):
        opened.close()


def read(source: Source, start: Offset, end: Offset, parallelism: int = 1) -> list[Chunk]:
    slices = through_json(source.partitions(start, end, parallelism))
    return [chunk for slice_ in slices for chunk in source.chunks(slice_)]


def text(kind: Kind, chunks: list[Chunk]) -> dict[str, str]:
    """The text of each stream, after checking that its chunks are contiguous, whole lines, numbered if at all, and labelled."""
    whole: dict[str, str] = defaultdict(str)
    ends: dict[str, int] = {}
    for chunk in chunks:
        name = kind.name(chunk)
        assert chunk.offset == ends.get(chunk.parent_id, 0)
        ends[chunk.parent_id] = chunk.next_offset
        assert chunk.number in (0, whole[name].count("\n") + 1)
        assert chunk.data.endswith(b"\n")
        assert chunk.labels["cluster"] == "prod"
        assert chunk.labels.keys() == {"cluster", *kind.labels}
        whole[name] += "".join(f"{kind.text(row)}\n" for row in chunk.data.decode().splitlines())
    return dict(whole)


def _last_name(chunk: Chunk) -> str:
    return chunk.source_id.rpartition("/")[2]


def _container(chunk: Chunk) -> str:
    return chunk.labels["container"]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_all_lines_are_read_once(source: Source, kind: Kind, parallelism: int) -> None:
    start = through_json(source.initial())
    end = through_json(source.latest(start))
    assert text(kind, read(source, start, end, parallelism)) == kind.everything
    assert len(source.partitions(start, end, parallelism)) <= parallelism


def test_reading_again_gives_the_same(source: Source) -> None:
    start = source.initial()
    end = source.latest(start)
    assert read(source, start, end) == read(source, start, end)


@pytest.mark.parametrize("max_lines", [1, 4, 7])
def test_bounded_batches_end_and_read_all_lines_once(source: Source, kind: Kind, max_lines: int) -> None:
    offset, chunks = through_json(source.initial()), []
    while (end := through_json(source.latest(offset, max_lines))) != offset:
        batch = read(source, offset, end)
        assert sum(chunk.data.count(b"\n") for chunk in batch) <= max(max_lines, len(kind.streams))
        chunks += batch
        offset = end
    assert text(kind, chunks) == kind.everything


def test_nothing_new_is_no_new_offset_and_no_slice(source: Source) -> None:
    end = through_json(source.latest(source.initial()))
    assert through_json(source.latest(end)) == end
    assert read(source, end, end) == []


def test_progress_tells_how_far_each_stream_is_read(source: Source) -> None:
    start = source.initial()
    behind = source.progress(source.latest(start, 4))
    assert any(not p.caught_up and p.read_to < p.end for p in behind)
    end = source.latest(start)
    done = {p.source_id: p for p in source.progress(end)}
    assert all(p.caught_up and p.read_to == p.end for p in done.values())
    ends = {chunk.parent_id: chunk.next_offset for chunk in read(source, start, end)}
    assert {name: p.end for name, p in done.items() if p.end} == ends
