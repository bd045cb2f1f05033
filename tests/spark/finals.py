"""What two runs over the same logs must agree on, and the reference to agree with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from connectors.files import find, read_path
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.pipeline import replay
from tests.rulepack.playing import plan

SAMPLES = Path(__file__).parents[2] / "samples"
STORIES = sorted(path for path in SAMPLES.iterdir() if path.name[0].isdigit())
HEALTHY = sorted(path for path in (SAMPLES / "goodlog").iterdir() if path.is_dir())


def labels(cluster: str) -> Mapping[str, str]:
    return {"cluster": cluster, "timezone": "Asia/Seoul"}


def lines(folder: Path, cluster: str) -> Iterator[RawLine | Progress]:
    for path in find([str(folder)]).files:
        yield from read_path(path, labels(cluster))


@cache
def reference(folder: Path) -> list[Any]:
    """The final incidents of `replay()` over a folder."""
    return finals({incident.id: incident for incident in replay(lines(folder, folder.name), plan())}.values())


def references(folders: Iterable[Path]) -> list[Any]:
    return sorted(final for folder in folders for final in reference(folder))


def finals(incidents: Iterable[Incident]) -> list[Any]:
    """Everything about incidents but their ids and revisions; those that went into others are no incidents."""
    return sorted(_final(incident) for incident in incidents if incident.status not in ("merged", "retracted"))


def _final(incident: Incident) -> Any:
    bare = replace(incident, id="", revision=0, opened_at=None, symptoms=(), alerts=())
    symptoms = sorted(repr(symptom) for symptom in incident.symptoms)
    return incident.key, repr(bare), symptoms, sorted(incident.alerts)
