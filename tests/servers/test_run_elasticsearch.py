"""`tocsin run` over a real Elasticsearch: what shippers indexed gives the incidents of the files that they read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import pytest

from engine.model.incidents import Incident
from engine.model.origins import origin_of
from engine.model.records import RawLine
from engine.pipeline import replay
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.indexing import SHAPES, Index, Line, lines_of
from tests.servers.test_run_kafka import tocsin
from tests.spark.finals import STORIES, finals, reference

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime")]

LABELS = {"timezone": "Asia/Seoul"}


def index_story(index: Index, story: Path, shape: str) -> None:
    """Index the lines of a story, those of its files in turn, as several shippers do at a time."""
    files = [iter(lines) for lines in lines_of(story)]
    index.write(
        (SHAPES[shape](line) for line in _in_turn(files)), ids=[id_of(line) for line in _in_turn(map(iter, lines_of(story)))]
    )


def _in_turn(files: Any) -> Iterator[Line]:
    left = list(files)
    for each in cycle(range(len(left))):
        if not any(left):
            return
        if left[each] is not None and (line := next(left[each], None)) is not None:
            yield line
        else:
            left[each] = None


def id_of(line: Line) -> str:
    return f"{line.host}-{line.file}-{line.number}"


def raw_lines(indices: str, index: str, story: Path) -> Iterator[RawLine]:
    """What `replay()` is to be given for a story that was indexed."""
    for line in chain.from_iterable(lines_of(story)):
        labels = {"host": line.host, "cluster": story.name, **LABELS}
        source_id = f"{indices}/{line.host}:{line.file}"
        yield RawLine(
            source_id, line.number, line.text.encode(), 0, None, labels, origin_of("elasticsearch", index, id_of(line))
        )


def config(folder: Path, sources: str, more: str = "") -> Path:
    path = folder / "tocsin.yml"
    path.write_text(f"sources:\n{sources}store: sqlite:///state.db\n{more}")
    return path


def source(node: ElasticsearchNode, indices: str, cluster: str, more: str = "") -> str:
    return (
        f"  - {{type: elasticsearch, url: '{node.url}', indices: ['{indices}'], timezone: Asia/Seoul,"
        f" labels: {{cluster: {cluster}}}{more}}}\n"
    )


def told(folder: Path) -> list[Incident]:
    store = Store.open(f"sqlite:///{folder}/state.db")
    try:
        return list(store.incidents())
    finally:
        store.close()


def alike(incidents: list[Any]) -> list[Any]:
    """What is the same of incidents whichever system their lines came from."""
    return sorted(key for key, *_ in incidents)


def test_stories_that_shippers_indexed_give_the_nine_incidents_of_their_files(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    sources, expected = "", list[Any]()
    for number, (story, shape) in enumerate(zip(STORIES, cycle(SHAPES))):
        index = Index(elasticsearch, shards=1 + number % 2)
        index_story(index, story, shape)
        expected += finals({i.id: i for i in replay(raw_lines(index.name, index.name, story), plan())}.values())
        sources += source(elasticsearch, index.name, story.name)
    done = tocsin("-c", config(tmp_path, sources, "spark: {batch_lines: 200}\n"), "--once")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("read by _seq_no (nothing that comes late is missed)") == len(STORIES)
    incidents = finals(told(tmp_path))
    assert incidents == sorted(expected)
    assert alike(incidents) == alike([final for story in STORIES for final in reference(story)])
    assert len(incidents) == 9
