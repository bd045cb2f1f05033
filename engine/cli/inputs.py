"""Open the sources of a configuration: the specs for the job, the input that each has now, and the errors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from connectors import connect, elasticsearch, files, journald, kafka, kafka_cluster
from engine.cli.output import count
from engine.cli.resuming import offsets_in
from engine.config import Checks, ElasticsearchSettings, Settings, SourceSettings
from engine.dsl.quantities import duration_s
from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing
from engine.model.records import SPEAKS_FOR, Labels
from engine.ports import Chunk, Offset, Source
from engine.spark.sources import SourceSpec

_PASSING = (SourceAway, SourceMissing, SourceDenied)  # an unbounded run waits for what may be read later
LIVE_START = "1h"  # how far back a live run reads when the source has no `start`
OPENERS: Mapping[str, str] = {
    "connect": "connectors.connect:open_source",
    "docker": "connectors.files:open_source",
    "elasticsearch": "connectors.elasticsearch:open_source",
    "files": "connectors.files:open_source",
    "journald": "connectors.journald:open_source",
    "kafka": "connectors.kafka:open_source",
    "kafka-cluster": "connectors.kafka_cluster:open_source",
    "kubernetes": "connectors.files:open_source",
}

READ_ANYWHERE = ("elasticsearch", "kafka")  # what the other types read is on the disk of the machine that the run is on


class SourceInput(Struct, frozen=True):
    """A source of the configuration, opened.

    Attributes:
        specs: the sources of the job: for type kafka one per topic, for type elasticsearch one per pattern, so that one can be
            added without moving the offsets of the others.
        summary: how much input there is now.
        contents: a line for each file or topic that can be read now.
        errors: what cannot be read.
        reading: of a source with several strategies, which one reads it and what it may miss.
        absent: the patterns of indices that no index has now.
    """

    specs: tuple[SourceSpec, ...]
    summary: str
    contents: tuple[str, ...]
    errors: tuple[SourceError, ...]
    reading: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class RunSurroundings(Struct, frozen=True):
    """What surrounds the sources of a run. `own_paths` and `own_indices` are written by tocsin itself and are not input;
    `offsets` are those of earlier runs, by the name of the spec. `answers` is the folder for what sources that ask are told."""

    own_paths: tuple[str, ...] = ()
    own_indices: tuple[str, ...] = ()
    offsets: Mapping[str, Offset] = {}
    answers: str = ""


NO_SURROUNDINGS = RunSurroundings()


def open_input(source: SourceSettings, once: bool, around: RunSurroundings = NO_SURROUNDINGS) -> SourceInput:
    """Open `source` and look at its present input. Raises RuntimeMissing when a package that it needs is not installed.

    Args:
        once: the input is bounded: a source without `start` is read from its beginning.
    """
    start = _start(source.start or ("earliest" if once else LIVE_START))
    labels = {**source.labels, "cluster": source.scope}
    return _INPUTS[source.type](source, {"labels": labels, "start": start, "final": once}, around)


def surroundings(settings: Settings) -> RunSurroundings:
    """Return what tocsin writes with `settings`, and the offsets of earlier runs. The paths are the store, unless it is on a
    server, the checkpoint, which contains Spark's log, and records of what was asked."""
    archives = [receiver for receiver in settings.receivers if isinstance(receiver, ElasticsearchSettings)]
    indices = {name for archive in archives for name in (archive.index, archive.changes) if name}
    answers = str(settings.checkpoint / "answers")
    return RunSurroundings(_own_paths(settings), tuple(sorted(indices)), offsets_in(settings.checkpoint), answers)


def _own_paths(settings: Settings) -> tuple[str, ...]:
    records = [Path(source.record) for source in settings.sources if source.record]
    paths = [path for path in (settings.store.path, settings.checkpoint, *records) if path is not None]
    return tuple(os.path.abspath(path) for path in paths)  # noqa: PTH100  (links stay)


def checks() -> Checks:
    """Return the checks of the connectors on a configuration."""
    labels = {
        **dict.fromkeys(("docker", "files", "kubernetes"), _files_label),
        "connect": connect.check_label,
        "elasticsearch": elasticsearch.check_label,
        "journald": journald.check_label,
        "kafka": kafka.check_label,
        "kafka-cluster": kafka_cluster.check_label,
    }
    return Checks(labels, {"kafka": kafka.check_option, "kafka-cluster": kafka_cluster.check_option})


def unreadable(inputs: Sequence[SourceInput], once: bool) -> list[SourceError]:
    """Return the errors of `inputs`, without repetitions of the same text.

    An unbounded run waits for input that is missing and for a cluster that does not answer, so these are no errors for it.
    Raises SourceMissing when a bounded run has nothing to read.
    """
    awaited = () if once else (SourceMissing, SourceAway)
    error_by_text = {str(error): error for source in inputs for error in source.errors if not isinstance(error, awaited)}
    errors = list(error_by_text.values())
    if once and not any(source.contents for source in inputs):
        why = "; ".join(str(error) for error in errors)
        raise SourceMissing(f"none of the sources has anything that can be read ({why}); nothing was run")
    return errors


def files_on_disk(settings: Settings) -> list[files.FilesSource]:
    """Return the sources of a configuration that are files, whoever writes them."""
    own_paths = _own_paths(settings)
    return [files.open_source(_files_settings(source, own_paths)) for source in settings.sources if source.type in _PATHS]


_PATHS: Mapping[str, Callable[[SourceSettings], Sequence[str]]] = {
    "files": lambda source: source.paths,
    "docker": lambda source: files.docker_roots(source.root),
    "kubernetes": lambda source: (source.root or files.POD_LOGS,),
}


def _files_settings(source: SourceSettings, own_paths: Sequence[str]) -> dict[str, Any]:
    settings = {"paths": _PATHS[source.type](source), "excluded": own_paths}
    return settings if source.type == "files" else {**settings, "select": source.select}


def _on_disk(source: SourceSettings, common: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    settings = {**_files_settings(source, around.own_paths), **common}
    spec = _spec(source, " ".join(source.paths) if source.type == "files" else _selected(source), settings)
    search = files.open_source(spec.settings).check()
    place = "" if source.paths else f" in {', '.join(settings['paths'])}"
    return SourceInput((spec,), f"{count(len(search.files), 'file')} now{place}", search.files, search.errors)


def _of_journald(source: SourceSettings, settings: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    spec = _spec(source, _selected(source), {"root": source.root, "select": source.select, **settings})
    try:
        newest = journald.open_source(spec.settings).check()
    except SourceError as error:
        return SourceInput(() if settings["final"] else (spec,), "not readable", (), (error,))
    return SourceInput((spec,), "read by journalctl", (newest,), ())


def _selected(source: SourceSettings) -> str:
    """Return the part of a spec's name with the place and the selection of a source without paths."""
    patterns = (f"{label}={','.join(patterns)}" for label, patterns in sorted(source.select.items()))
    return " ".join((source.root or "default", *patterns))


def _of_kafka(source: SourceSettings, settings: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    address = {"bootstrap_servers": source.bootstrap_servers, "options": source.options}
    specs, topics, errors, records = list[SourceSpec](), list[str](), list[SourceError](), 0
    for topic in source.topics:
        spec = _spec(source, f"{source.bootstrap_servers} {topic}", {**address, "topic": topic, **settings})
        try:
            partitions = kafka.open_source(spec.settings).count()
        except SourceError as error:
            errors.append(_with_near_topic(error, topic, spec) if isinstance(error, SourceMissing) else error)
            specs += [] if settings["final"] else [spec]  # an unbounded run waits for the topic
            continue
        specs.append(spec)
        records += sum(partitions.values())
        topics.append(
            f"{topic}: {count(len(partitions), 'partition')}, up to {count(sum(partitions.values()), 'record')} in a first run"
        )
    summary = f"{count(len(topics), 'topic')} on {source.bootstrap_servers}, up to {count(records, 'record')} in a first run"
    return SourceInput(tuple(specs), summary, tuple(topics), tuple(errors))


def open_topic(source: SourceSettings, topic: str, start: str) -> Source:
    """Open one topic of a source of type kafka, to be read from `start` on. Raises RuntimeMissing."""
    labels = {**source.labels, "cluster": source.scope}
    address = {"bootstrap_servers": source.bootstrap_servers, "options": source.options, "topic": topic}
    return kafka.open_source({**address, "labels": labels, "start": start})


def _with_near_topic(error: SourceMissing, topic: str, spec: SourceSpec) -> SourceMissing:
    """Return `error` with the topic of the cluster whose name is most like `topic`, if one is."""
    near = get_close_matches(topic, kafka.open_source(spec.settings).topics(), n=1, cutoff=0.75)
    return SourceMissing(f"{error}; did you mean {near[0]}?") if near else error


def _of_elasticsearch(source: SourceSettings, settings: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    place = ", ".join(source.connection["urls"])
    specs, patterns, errors, reading, documents = list[SourceSpec](), list[str](), list[SourceError](), list[str](), 0
    absent: list[str] = []
    for indices in source.indices:
        spec = _spec(source, f"{place} {indices}", {**_indices_settings(source, indices), **settings})
        try:
            input = elasticsearch.open_source(spec.settings).look(around.offsets.get(spec.name), around.own_indices)
        except SourceError as error:
            errors.append(error)
            specs += [spec] if isinstance(error, _PASSING) and not settings["final"] else []
            continue
        specs.append(spec)
        documents += input.documents
        absent += [] if input.cluster.indices else [indices]
        names = f"{count(len(input.cluster.indices), 'index', 'indices')} of {input.cluster.server}"
        patterns.append(f"{indices}: {names}, up to {count(input.documents, 'document')} in a first run")
        reading += [f"{indices}: {sentence}" for sentence in (input.choice.sentence, *input.choice.warnings)]
    summary = f"{count(len(patterns), 'pattern')} on {place}, up to {count(documents, 'document')} in a first run"
    return SourceInput(tuple(specs), summary, tuple(patterns), tuple(errors), tuple(reading), tuple(absent))


def _indices_settings(source: SourceSettings, indices: str) -> dict[str, object]:
    options = {"query": source.query, "read_by": source.read_by, "overlap_s": source.overlap_s}
    return {"connection": source.connection, **options, "indices": indices}


def lines_around(source: SourceSettings, indices: str, index: str, id: str) -> Iterator[Chunk]:
    """Yield the lines of a document and of those around it in one pattern of a source of type elasticsearch. Raises
    RuntimeMissing."""
    labels = {**source.labels, "cluster": source.scope}
    return elasticsearch.open_source({**_indices_settings(source, indices), "labels": labels}).around(index, id)


def _of_connect(source: SourceSettings, settings: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    place = ", ".join(source.connection["urls"])
    spec = _asking(source, place, {SPEAKS_FOR: "connect", **source.labels}, bool(settings["final"]), around)
    try:
        inventory = connect.look(spec.settings)
    except SourceError as error:
        return SourceInput(() if settings["final"] else (spec,), f"{place}, which does not answer now", (), (error,))
    parts = f"{count(len(inventory.parts), 'connector')}, {count(inventory.tasks, 'task')} of Kafka Connect {inventory.version}"
    return SourceInput((spec,), f"{place}, asked every {source.every_s:g} s", (parts,), ())


def _of_cluster(source: SourceSettings, settings: Mapping[str, object], around: RunSurroundings) -> SourceInput:
    place = source.connection["bootstrap_servers"]
    spec = _asking(source, place, {SPEAKS_FOR: "broker", **source.labels}, bool(settings["final"]), around)
    try:
        inventory, missing_rights = kafka_cluster.look(spec.settings)
    except SourceError as error:
        return SourceInput(() if settings["final"] else (spec,), f"{place}, which does not answer now", (), (error,))
    parts = (
        count(len(inventory.brokers), "broker"),
        count(len(inventory.topics), "topic"),
        count(len(inventory.groups), "group"),
    )
    reading = tuple(f"{place}: {sentence}" for sentence in missing_rights)
    return SourceInput((spec,), f"{place}, asked every {source.every_s:g} s", (", ".join(parts),), (), reading)


def _asking(source: SourceSettings, place: str, labels: Labels, final: bool, around: RunSurroundings) -> SourceSpec:
    """Return the spec of a source that asks `place`. Its answers are kept below a folder named after the spec."""
    settings: dict[str, object] = {
        "connection": source.connection,
        "every_s": source.every_s,
        "record": source.record,
        "labels": {**labels, "cluster": source.scope},
        "final": final,
    }
    spec = _spec(source, place, settings)
    folder = hashlib.sha256(spec.name.encode()).hexdigest()[:16]
    return replace(spec, settings={**settings, "folder": os.path.join(around.answers, folder)})  # noqa: PTH118


_INPUTS: Mapping[str, Callable[[SourceSettings, Mapping[str, object], RunSurroundings], SourceInput]] = {
    "connect": _of_connect,
    "elasticsearch": _of_elasticsearch,
    "files": _on_disk,
    "docker": _on_disk,
    "kubernetes": _on_disk,
    "journald": _of_journald,
    "kafka": _of_kafka,
    "kafka-cluster": _of_cluster,
}


def _spec(source: SourceSettings, resource: str, settings: Mapping[str, object]) -> SourceSpec:
    name = f"{source.type} {source.scope} {resource}"
    return SourceSpec(name, OPENERS[source.type], settings, source.scope, source.type not in READ_ANYWHERE)


def _start(start: str) -> str:
    """Return `start`; a duration is converted to the time that lies so far back from now (ISO 8601)."""
    with suppress(ValueError):
        return (datetime.now(UTC) - timedelta(seconds=duration_s(start))).isoformat()
    return start


def _files_label(template: str) -> str | None:
    try:
        files.check_label(template)
    except files.LabelError as error:
        return str(error)
    return None
