"""The one adapter that makes sources (ports.Source) a streaming Python data source, and the tick source beside it.

`read()` runs in Spark's Python workers: it fetches a slice and scans it there, so raw lines never enter the JVM. What a source
says of itself (progress) is a function of its end offset and travels with the first partition of a batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from engine.codec import dumps, loads
from engine.errors import DataLoss
from engine.model.records import Tick
from engine.ports import Chunk, Offset
from engine.spark.combining import combined
from engine.spark.rows import SCHEMA, Item, Loss, Row, row
from engine.spark.slices import scan, stages_of
from engine.spark.sources import SourceSpec

SOURCE_FORMAT = "tocsin-source"
TICK_FORMAT = "tocsin-tick"


def source_options(sources: Sequence[SourceSpec], plan_file: str, parallelism: int, max_lines: int | None) -> dict[str, str]:
    """Return the options of SOURCE_FORMAT; `max_lines` bounds what each source gives to a batch."""
    return {
        "sources": dumps(list(sources)),
        "planFile": plan_file,
        "parallelism": str(parallelism),
        "maxLines": str(max_lines or 0),
    }


class SourceStream(DataSource):  # type: ignore[misc]
    """All sources of a job as one stream of rows of SCHEMA: a task and a planner more would cost more than they help."""

    @classmethod
    def name(cls) -> str:
        """Return the format it is read by."""
        return SOURCE_FORMAT

    def schema(self) -> str:
        """Return the schema of its rows."""
        return SCHEMA

    def streamReader(self, schema: object) -> SourceReader:  # noqa: N802
        """Return its reader."""
        return SourceReader(dict(self.options))


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans in the driver's planner process, reads in the workers. Its offset holds each source's offset by name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        specs = loads(lowered["sources"], list[SourceSpec])
        self._scopes = {spec.name: spec.scope for spec in specs}
        self._sources = {spec.name: spec.open() for spec in specs}
        self._plan_file = lowered["planfile"]
        self._parallelism = int(lowered["parallelism"])
        self._max_lines = int(lowered["maxlines"])

    def initialOffset(self) -> Mapping[str, Any]:  # noqa: N802
        """Return where a first run starts."""
        return self._initial({})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: a source that is opened for bounded input bounds itself."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the bound on one batch."""
        return ReadMaxRows(self._max_lines) if self._max_lines else ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> Mapping[str, Any]:  # noqa: N802
        """Return how far the next batch reaches; a source that is gone from the configuration stays where it was."""
        lines = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = {name: source.latest(start[name], lines) for name, source in self._sources.items() if name in start}
        return {**self._initial(start), **start, **ends}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Return the slices of a batch, and what the sources say at its end."""
        tasks: list[list[Any]] = [[] for _ in range(self._parallelism)]
        said: list[Row] = []
        for name, source in self._sources.items():
            if name not in start or name not in end:
                continue  # new in the configuration: it starts with the next batch
            for at, slice_ in enumerate(source.partitions(start[name], end[name], self._parallelism)):
                tasks[at % self._parallelism].append((name, slice_))
            said += [row(self._scopes[name], progress) for progress in source.progress(end[name])]
        return [InputPartition((slices, said if at == 0 else [])) for at, slices in enumerate(tasks)]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Yield the rows of some slices; lines that are gone become a row too, so that the job goes on."""
        slices, said = partition.value
        for name, slice_ in slices:
            yield from (row(self._scopes[name], item) for item in self._items(name, slice_))
        yield from said

    def _items(self, name: str, slice_: Mapping[str, Any]) -> Iterator[Item]:
        losses: list[DataLoss] = []
        yield from combined(scan(_up_to_loss(self._sources[name].chunks(slice_), losses), stages_of(self._plan_file)))
        yield from (Loss(loss.source_id, loss.lost_from, loss.lost_to, loss.why) for loss in losses)

    def _initial(self, known: Mapping[str, Any]) -> Mapping[str, Offset]:
        return {name: source.initial() for name, source in self._sources.items() if name not in known}


def _up_to_loss(chunks: Iterator[Chunk], losses: list[DataLoss]) -> Iterator[Chunk]:
    """Yield `chunks`; what ends them early goes to `losses`, so that what was read is still scanned to its end."""
    try:
        yield from chunks
    except* DataLoss as group:
        losses += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]


class TickStream(DataSource):  # type: ignore[misc]
    """Processing time as data: one tick a second for each scope of the option `scopes` (JSON list)."""

    @classmethod
    def name(cls) -> str:
        """Return the format it is read by."""
        return TICK_FORMAT

    def schema(self) -> str:
        """Return the schema of its rows."""
        return SCHEMA

    def streamReader(self, schema: object) -> TickReader:  # noqa: N802
        """Return its reader."""
        return TickReader(json.loads(self.options["scopes"]))


class TickReader(DataSourceStreamReader):  # type: ignore[misc]
    """The clock is read once, when a batch is planned; the time is the offset, so a repeated batch has the same time."""

    def __init__(self, scopes: Sequence[str]) -> None:
        self._scopes = scopes

    def initialOffset(self) -> Mapping[str, int]:  # noqa: N802
        """Return the time before all ticks."""
        return {"at_s": 0}

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> Mapping[str, int]:  # noqa: N802
        """Return the present second."""
        return {"at_s": max(int(time.time()), start["at_s"])}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        """Return one partition with the tick of the batch, none when no second has passed."""
        return [InputPartition(end["at_s"])] if end["at_s"] > start["at_s"] else []

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Yield a tick for each scope."""
        tick = Tick(datetime.fromtimestamp(partition.value, UTC))
        yield from (row(scope, tick) for scope in self._scopes)
