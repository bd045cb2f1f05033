"""One suite for every Source: what the Spark adapter relies on, whatever the system behind it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connectors import files, memory
from engine.ports import Chunk, Offset, Source

STREAMS = {"a.log": [f"a{n}" for n in range(10)], "b.log": [f"b{n}" for n in range(3)], "c.log": []}


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.fixture(params=["memory", "files"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Mapping[str, Any]]:
    if request.param == "memory":
        return "memory", {"streams": STREAMS, "labels": {"cluster": "prod"}}
    for name, lines in STREAMS.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return "files", {"paths": [str(tmp_path)], "labels": {"cluster": "prod"}}


@pytest.fixture
def source(settings: tuple[str, Mapping[str, Any]]) -> Source:
    openers = {"memory": memory.open_source, "files": files.open_source}
    return openers[settings[0]](through_json(settings[1]))


def read(source: Source, start: Offset, end: Offset, parallelism: int = 1) -> list[Chunk]:
    slices = through_json(source.partitions(start, end, parallelism))
    return [chunk for slice_ in slices for chunk in source.chunks(slice_)]


def text(chunks: list[Chunk]) -> dict[str, str]:
    """The text of each stream by its last name, after checking that its chunks are contiguous, whole lines and labelled."""
    whole: dict[str, bytes] = defaultdict(bytes)
    for chunk in chunks:
        name = chunk.source_id.rpartition("/")[2]
        assert chunk.offset == len(whole[name])
        assert chunk.number == whole[name].count(b"\n") + 1
        assert chunk.data.endswith(b"\n")
        assert chunk.labels == {"cluster": "prod"}
        whole[name] += chunk.data
    return {name: data.decode() for name, data in whole.items()}


EVERYTHING = {name: "".join(f"{line}\n" for line in lines) for name, lines in STREAMS.items() if lines}


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_all_lines_are_read_once(source: Source, parallelism: int) -> None:
    start = through_json(source.initial())
    end = through_json(source.latest(start))
    assert text(read(source, start, end, parallelism)) == EVERYTHING
    assert len(source.partitions(start, end, parallelism)) <= parallelism


def test_reading_again_gives_the_same(source: Source) -> None:
    start = source.initial()
    end = source.latest(start)
    assert read(source, start, end) == read(source, start, end)


@pytest.mark.parametrize("max_lines", [1, 4, 7])
def test_bounded_batches_end_and_read_all_lines_once(source: Source, max_lines: int) -> None:
    offset, chunks = through_json(source.initial()), []
    while (end := through_json(source.latest(offset, max_lines))) != offset:
        batch = read(source, offset, end)
        assert sum(chunk.data.count(b"\n") for chunk in batch) <= max(max_lines, len(STREAMS))
        chunks += batch
        offset = end
    assert text(chunks) == EVERYTHING


def test_nothing_new_is_no_new_offset_and_no_slice(source: Source) -> None:
    end = through_json(source.latest(source.initial()))
    assert through_json(source.latest(end)) == end
    assert read(source, end, end) == []


def test_progress_tells_how_far_each_stream_is_read(source: Source) -> None:
    start = source.initial()
    part = source.latest(start, 4)
    behind = {p.source_id.rpartition("/")[2]: p for p in source.progress(part)}
    assert not behind["a.log"].caught_up
    assert behind["a.log"].read_to < behind["a.log"].end
    done = {p.source_id.rpartition("/")[2]: p for p in source.progress(source.latest(start))}
    assert all(p.caught_up and p.read_to == p.end == len(EVERYTHING.get(name, "")) for name, p in done.items())
