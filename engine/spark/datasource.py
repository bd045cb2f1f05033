"""The one adapter that makes any ports.Source a streaming Python data source, and the tick source beside it.

`read()` runs in Spark's Python workers: it fetches a slice and scans it there, so raw lines never enter the JVM. What a source
says of itself (progress) is a function of its end offset and travels with the first partition of a batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from engine.errors import DataLoss
from engine.model.records import Tick
from engine.ports import Chunk, Source
from engine.spark.rows import SCHEMA, Loss, Row, row
from engine.spark.slices import scan, stages_of

SOURCE_FORMAT = "tocsin-source"
TICK_FORMAT = "tocsin-tick"


def source_options(opener: str, settings: Mapping[str, Any], scope: str, plan_file: str, **limits: int) -> dict[str, str]:
    """Return the options of SOURCE_FORMAT.

    Args:
        opener: `module:function` that makes the source of `settings` (JSON), importable in the workers.
        scope: what the source's lines are correlated in.
        limits: `max_lines` of a batch and `parallelism`, when they are bounded.
    """
    return {
        "opener": opener,
        "settings": json.dumps(settings),
        "scope": scope,
        "planFile": plan_file,
        **{name: str(limit) for name, limit in limits.items()},
    }


def open_source(opener: str, settings: Mapping[str, Any]) -> Source:
    """Return the source that `opener` (`module:function`) makes of `settings`."""
    module, _, function = opener.partition(":")
    made: Source = getattr(import_module(module), function)(settings)
    return made


class SourceStream(DataSource):  # type: ignore[misc]
    """Any source of lines, as rows of SCHEMA."""

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
    """Plans in the driver's planner process, reads in the workers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        self._source = open_source(lowered["opener"], json.loads(lowered["settings"]))
        self._scope, self._plan_file = lowered["scope"], lowered["planfile"]
        self._max_lines = int(lowered.get("max_lines", 0)) or None
        self._parallelism = int(lowered.get("parallelism", 1))

    def initialOffset(self) -> Mapping[str, Any]:  # noqa: N802
        """Return where a first run starts."""
        return self._source.initial()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: a source that is opened for bounded input bounds itself."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the bound on one batch."""
        return ReadMaxRows(self._max_lines) if self._max_lines else ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> Mapping[str, Any]:  # noqa: N802
        """Return how far the next batch reaches."""
        return self._source.latest(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Return the slices of a batch, and what the source says at its end."""
        slices: list[Mapping[str, Any] | None] = [*self._source.partitions(start, end, self._parallelism)] or [None]
        said = [row(self._scope, progress) for progress in self._source.progress(end)]
        return [InputPartition((slice_, said if at == 0 else [])) for at, slice_ in enumerate(slices)]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Yield the rows of one slice; lines that are gone become a row too, so that the job goes on."""
        slice_, said = partition.value
        losses: list[DataLoss] = []
        if slice_ is not None:
            for item in scan(_up_to_loss(self._source.chunks(slice_), losses), stages_of(self._plan_file)):
                yield row(self._scope, item)
        yield from (row(self._scope, Loss(loss.source_id, loss.lost_from, loss.lost_to, loss.why)) for loss in losses)
        yield from said


def _up_to_loss(chunks: Iterator[Chunk], losses: list[DataLoss]) -> Iterator[Chunk]:
    """Yield `chunks`; what ends them early goes to `losses`, so that what was read is still scanned to its end."""
    try:
        yield from chunks
    except DataLoss as loss:
        losses.append(loss)


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
