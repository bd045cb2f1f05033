"""The stories as container runtimes would have written them: the same incidents, and each line says whose it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.files import container_labels, find, read_path
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.pipeline import replay
from tests.containers import dated, docker_row, make_docker_log, make_pod_log, pod_row, stamps
from tests.rulepack.playing import plan
from tests.spark.finals import STORIES, labels
from tests.spark.finals import lines as plain_lines

SEOUL = timedelta(hours=9)  # ahead of UTC; the stamps in the stories are in its time
PERIOD = re.compile(r"\.20\d\d(-\d\d){3}$")
NEVER = datetime(2022, 1, 1, tzinfo=UTC)

Make = Callable[[Path, str], Path]
Row = Callable[[str, datetime], str]
LAYOUTS: Mapping[str, tuple[Make, Row]] = {
    "docker": (make_docker_log, docker_row),
    "pods": (lambda root, name: make_pod_log(root, name, "kafka"), pod_row),
}


def contained(story: Path, root: Path, layout: str) -> None:
    """Write the logs of a story as a runtime would have, each as that of a container named after its file, one for all files of
    a log that was rotated.

    A runtime stamps every line: those of files without any stamp are placed where the trouble is.
    """
    make, row = LAYOUTS[layout]
    texts = {Path(path).relative_to(story): Path(path).read_text().splitlines() for path in find([str(story)]).files}
    every = [line for text in texts.values() for line in text]
    trouble = min(
        stamps((line for line in every if " ERROR " in line), SEOUL), default=min(stamps(every, SEOUL), default=NEVER)
    )
    logs: dict[str, list[str]] = {}
    for path, text in sorted(texts.items()):
        name = PERIOD.sub("", path.as_posix()).replace("/", "-").replace("_", "-").lower()
        logs.setdefault(name, []).extend(f"{row(line, at)}\n" for line, at in dated(text, trouble, SEOUL))
    for name, rows in logs.items():
        make(root, name).write_text("".join(rows))


def contained_lines(root: Path, cluster: str) -> Iterator[RawLine | Progress]:
    for path in find([str(root)]).files:
        yield from read_path(path, {**container_labels(path), **labels(cluster)})


def incidents(lines: Iterator[RawLine | Progress]) -> list[Incident]:
    final = {incident.id: incident for incident in replay(lines, plan())}
    return [incident for incident in final.values() if incident.status not in ("merged", "retracted")]


def content(incident: Incident) -> Any:
    """What is said of an incident, but when: runtimes know a time of lines without a stamp. Who is not named stands as `?`."""
    scope, rule, entity = incident.key
    named = tuple((name, "?" if value.startswith("?") else value) for name, value in entity)
    return scope, rule, named, incident.title, incident.severity, incident.cause, incident.count


@pytest.mark.slow
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_nine_incidents_are_the_same_and_their_lines_name_the_container(layout: str, tmp_path: Path) -> None:
    count = 0
    for story in STORIES:
        root = tmp_path / story.name
        contained(story, root, layout)
        ours = incidents(contained_lines(root, story.name))
        theirs = incidents(plain_lines(story, story.name))
        assert sorted(map(content, ours)) == sorted(map(content, theirs))
        count += len(ours)
        for incident in ours:
            sources = {evidence.source_id for evidence in incident.evidence}
            assert all(source.startswith("docker/") or "/kafka_" in source for source in sources)
            if len(sources) == 1:
                assert incident.labels.keys() >= ({"container"} if layout == "docker" else {"container", "pod", "namespace"})
    assert count == 9
