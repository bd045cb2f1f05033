"""The sources of a configuration, opened: what the job is given of each, what there is to read now, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from connectors import files, kafka
from engine.cli.output import count
from engine.config import Checks, Settings, SourceSettings
from engine.dsl.quantities import duration_s
from engine.errors import SourceAway, SourceError, SourceMissing
from engine.spark.sources import SourceSpec

LIVE_START = "1h"  # what a live run reads of logs that were there before it, unless the source says otherwise
OPENERS: Mapping[str, str] = {"files": "connectors.files:open_source", "kafka": "connectors.kafka:open_source"}


class SourceInput(Struct, frozen=True):
    """A source of the configuration.

    `specs` are for the job: a source of type kafka gives one a topic, so that a topic can be added without the others losing
    their place. `found` says what there is to read now, a line each, `summary` how much it is; `errors` what cannot be read.
    """

    specs: tuple[SourceSpec, ...]
    summary: str
    found: tuple[str, ...]
    errors: tuple[SourceError, ...]


def opened(source: SourceSettings, once: bool, own: Sequence[str] = ()) -> SourceInput:
    """Return `source` as it is now. Raises RuntimeMissing when a package that it needs is not installed.

    Args:
        once: the input is bounded by what is there; without a start of its own it is read from its beginning.
        own: the files and folders that tocsin writes, which are no logs to follow.
    """
    start = _start(source.start or ("earliest" if once else LIVE_START))
    labels = {**source.labels, "cluster": source.scope}
    return _INPUTS[source.type](source, {"labels": labels, "start": start, "final": once}, own)


def own_paths(settings: Settings) -> tuple[str, ...]:
    """Return the files and folders that tocsin writes by `settings`: the store, unless it is on a server, and the checkpoint,
    which Spark's log is in."""
    _, _, store = settings.store.partition("sqlite:///")
    return tuple(os.path.abspath(path) for path in (store, settings.checkpoint) if path)  # noqa: PTH100  (links stay)


def checks() -> Checks:
    """Return what the connectors know to be wrong in a configuration."""
    return Checks({"files": _files_label, "kafka": kafka.check_label}, kafka.check_option)


def unreadable(inputs: Sequence[SourceInput], once: bool, dry_run: bool = False) -> list[SourceError]:
    """Return what cannot be read, each sentence once.

    What is not there yet is no problem for a run without an end, which waits for it; nor is a cluster that does not answer, but
    a dry run tells of that. Raises SourceMissing when there is nothing at all to read, and never will be.
    """
    waits = () if once else (SourceMissing,) if dry_run else (SourceMissing, SourceAway)
    told = {str(error): error for each in inputs for error in each.errors if not isinstance(error, waits)}
    errors = list(told.values())
    if once and not any(each.found for each in inputs):
        why = "; ".join(str(error) for error in errors)
        raise SourceMissing(f"none of the sources has anything that can be read ({why}); nothing was run")
    return errors


def _of_files(source: SourceSettings, settings: Mapping[str, object], own: Sequence[str]) -> SourceInput:
    spec = _spec(source, " ".join(source.paths), {"paths": source.paths, "excluded": own, **settings})
    found = files.open_source(spec.settings).check()
    return SourceInput((spec,), f"{count(len(found.files), 'file')} now", found.files, found.errors)


def _of_kafka(source: SourceSettings, settings: Mapping[str, object], own: Sequence[str]) -> SourceInput:
    address = {"bootstrap_servers": source.bootstrap_servers, "options": source.options}
    specs, found, errors, records = list[SourceSpec](), list[str](), list[SourceError](), 0
    for topic in source.topics:
        spec = _spec(source, f"{source.bootstrap_servers} {topic}", {**address, "topic": topic, **settings})
        try:
            partitions = kafka.open_source(spec.settings).count()
        except SourceError as error:
            errors.append(error)
            specs += [] if settings["final"] else [spec]  # a run without end waits for what is not there
            continue
        specs.append(spec)
        records += sum(partitions.values())
        found.append(
            f"{topic}: {count(len(partitions), 'partition')}, up to {count(sum(partitions.values()), 'record')} in a first run"
        )
    summary = f"{count(len(found), 'topic')} on {source.bootstrap_servers}, up to {count(records, 'record')} in a first run"
    return SourceInput(tuple(specs), summary, tuple(found), tuple(errors))


_INPUTS: Mapping[str, Callable[[SourceSettings, Mapping[str, object], Sequence[str]], SourceInput]] = {
    "files": _of_files,
    "kafka": _of_kafka,
}


def _spec(source: SourceSettings, what: str, settings: Mapping[str, object]) -> SourceSpec:
    return SourceSpec(f"{source.type} {source.scope} {what}", OPENERS[source.type], settings, source.scope)


def _start(start: str) -> str:
    """Return `start` with a duration back from now as the time it stands for."""
    with suppress(ValueError):
        return (datetime.now(UTC) - timedelta(seconds=duration_s(start))).isoformat()
    return start


def _files_label(template: str) -> str | None:
    try:
        files.check_label(template)
    except files.LabelError as error:
        return str(error)
    return None
