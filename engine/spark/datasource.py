"""The one adapter that makes sources (ports.Source) a streaming Python data source, whose offset holds the time as well.

`read()` runs in Spark's Python workers: it fetches a slice and scans it there, so raw lines never enter the JVM. What a source
says of itself (progress) and the time (ticks) are functions of the offset and travel with the first partition of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from engine.clock import SteadyClock
from engine.codec import dumps, loads, made, plain
from engine.errors import DataLoss, SourceAway, SourceDenied
from engine.model.phrases import lasting
from engine.model.quarantine import DeadLetter
from engine.model.records import Progress, Tick
from engine.ports import Chunk, Offset, Source
from engine.spark.combining import combined
from engine.spark.rows import SCHEMA, BatchRow, InputLoss, InputNotice, RowTuple, row, sent
from engine.spark.slices import scan, stages_of
from engine.spark.sources import SourceSpec
from engine.spark.stalls import Failure, Stall, notices, renewed, stalled

SOURCE_FORMAT = "tocsin-source"
_LOG = "spark.log"
# A tick costs a batch. What was just read is waited for by the second; when all is quiet, silences are measured in minutes:
TICK_S, LIVELY_S, QUIET_TICK_S = 1, 3, 5
STANDS_STILL_S = 60  # how far back a clock may be for the time to wait for it; it is set back where that is more


class ReadSettings(Struct, frozen=True):
    """How SOURCE_FORMAT reads: the plan, how many tasks, how much each source gives to a batch, and for how many seconds one
    may be unreadable before that is an incident; None: the input has an end, so nobody is waited for and time stands still."""

    plan_file: str
    parallelism: int = 1
    max_lines: int | None = None
    stalled_after_s: float | None = None


class SourceOffsets(Struct, frozen=True):
    """The offset of all sources: where each stands, which cannot be read, when (seconds since 1970) it was so decided, and
    when a source last moved. A batch that is done again has the same time. `clock`: what there is to say of the machine's."""

    sources: Mapping[str, Any]
    stalls: tuple[Stall, ...] = ()
    at_s: int = 0
    moved_s: int = 0
    clock: str = ""


def source_options(sources: Sequence[SourceSpec], reading: ReadSettings) -> dict[str, str]:
    """Return the options of SOURCE_FORMAT."""
    return {"sources": dumps(list(sources)), "reading": dumps(reading)}


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
    """Plans in the driver's planner process, reads in the workers. Its offset is a Place as JSON."""

    def __init__(self, options: Mapping[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        specs = loads(lowered["sources"], list[SourceSpec])
        self._scopes = {spec.name: spec.scope for spec in specs}
        self._sources = {spec.name: spec.open() for spec in specs}
        self._reading = loads(lowered["reading"], ReadSettings)
        self._live = self._reading.stalled_after_s is not None
        self._clock = SteadyClock()  # a wall clock that jumps would stop the ticks, or have everybody fall silent at once

    def initialOffset(self) -> Mapping[str, Any]:  # noqa: N802
        """Return where a first run starts; a source that cannot be read now will be asked again."""
        sources, _ = self._asked(lambda name, source: source.initial(), frozenset(self._sources))
        return _json(SourceOffsets(sources))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: a source that is opened for bounded input bounds itself."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the bound on one batch."""
        lines = self._reading.max_lines
        return ReadMaxRows(lines) if lines else ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> Mapping[str, Any]:  # noqa: N802
        """Return how far the next batch reaches; a source that cannot be read now, or is gone from the configuration, stays
        where it was."""
        lines = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        before = _place(start)
        known, fresh = before.sources.keys() & self._sources.keys(), self._sources.keys() - before.sources.keys()
        ends, away = self._asked(lambda name, source: source.latest(before.sources[name], lines), known)
        begins, absent = self._asked(lambda name, source: source.initial(), fresh)
        jump = self._clock.check() if self._live else None
        now_s, bound_s = int(self._clock.now().timestamp()), self._reading.stalled_after_s or 0.0
        stalls = renewed(before.stalls, [*away, *absent, *self._unreadable(known)], now_s, bound_s)
        after = replace(before, sources={**begins, **before.sources, **ends}, stalls=stalls)
        there = _json(after)
        if there == start and jump is None and not self._due(before, now_s):
            return start
        at_s = now_s if _set_back(before.at_s, now_s) else max(now_s, before.at_s)
        moved_s = at_s if there["sources"] != start["sources"] else min(before.moved_s, at_s)
        return _json(replace(after, at_s=at_s, moved_s=moved_s, clock=str(jump or "")))

    def _due(self, place: SourceOffsets, now_s: int) -> bool:
        """Tell whether time itself makes a batch."""
        lively = place.at_s < place.moved_s + LIVELY_S
        due = now_s - place.at_s >= (TICK_S if lively else QUIET_TICK_S)
        return self._live and (due or _set_back(place.at_s, now_s))

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Return the slices of a batch, and what the sources say at its end."""
        before, after, parallelism = _place(start), _place(end), self._reading.parallelism
        tasks: list[list[Any]] = [[] for _ in range(parallelism)]
        said = [row(scope, notice) for scope, notice in notices(before.stalls, after.stalls, after.at_s)]
        said += [row(scope, notice) for scope, notice in self._of_the_clock(before, after)]
        said += [row(scope, tick) for tick in self._ticks(before, after) for scope in sorted({*self._scopes.values()})]
        waiting = stalled(after.stalls)
        for name, source in self._sources.items():
            if name not in before.sources or name not in after.sources:
                continue  # new in the configuration: it starts with the next batch
            here, there = before.sources[name], after.sources[name]
            for number, slice_ in enumerate(source.partitions(here, there, parallelism)):
                tasks[number % parallelism].append((name, slice_))
            said += [row(self._scopes[name], each) for each in _progress(source, there, name in waiting)]
        return [InputPartition((after.at_s, slices, [] if n else said)) for n, slices in enumerate(tasks)]

    def _ticks(self, before: SourceOffsets, after: SourceOffsets) -> Iterator[Tick]:
        """Yield processing time as data, at most one tick a batch."""
        if self._live and after.at_s != before.at_s:
            yield Tick(datetime.fromtimestamp(after.at_s, UTC), set_back=after.at_s < before.at_s)

    def _of_the_clock(self, before: SourceOffsets, after: SourceOffsets) -> Iterator[tuple[str, InputNotice]]:
        """Yield, once and not for each scope, what there is to say of the machine's clock."""
        at, scope = datetime.fromtimestamp(after.at_s, UTC), min(self._scopes.values(), default="default")
        if after.clock:
            yield scope, InputNotice(at, after.clock)
        if self._live and after.at_s < before.at_s:
            ahead = lasting(timedelta(seconds=before.at_s - after.at_s))
            yield (
                scope,
                InputNotice(at, f"the time that silences are judged by was {ahead} ahead of the clock, and is set back"),
            )

    def read(self, partition: InputPartition) -> Iterator[RowTuple]:
        """Yield the rows of some slices; lines that are gone become a row too, so that the job goes on."""
        at_s, slices, said = partition.value
        at = datetime.fromtimestamp(at_s, UTC)
        for name, slice_ in slices:
            yield from (sent(self._scopes[name], item) for item in self._items(name, slice_, at))
        yield from said

    def _items(self, name: str, slice_: Mapping[str, Any], at: datetime) -> Iterator[BatchRow]:
        losses: list[DataLoss] = []
        stages = stages_of(self._reading.plan_file)
        lost_before = stages.lost_matches
        for item in combined(scan(_up_to_loss(self._sources[name].chunks(slice_), losses), stages)):
            yield replace(item, at=at) if isinstance(item, DeadLetter) else item
        if stages.lost_matches > lost_before:
            yield InputNotice(
                at, f"Hyperscan lost matches in '{name}' that RE2 finds: RE2 is used from now on; see {_LOG} and report it"
            )
        yield from (InputLoss(loss.source_id, loss.lost_from, loss.lost_to, loss.why, at) for loss in losses)

    def _asked(
        self, question: Callable[[str, Source], Offset], names: Set[str]
    ) -> tuple[Mapping[str, Offset], Sequence[Failure]]:
        """Return the answers of the sources called `names`, and which of them cannot be read now.

        Raises SourceAway when the input has an end: then there is nothing to wait for.
        """
        answers, away = dict[str, Offset](), list[Failure]()
        for name in sorted(names):
            try:
                answers[name] = question(name, self._sources[name])
            except SourceAway as failure:
                if not self._live:
                    raise
                away.append(Failure(self._scopes[name], name, failure.what, str(failure)))
        return answers, away

    def _unreadable(self, names: Set[str]) -> Iterator[Failure]:
        """Yield what sources of input without an end passed over; bounded input is looked at before the job begins."""
        for name in sorted(names) if self._live else ():
            for what, error in self._sources[name].unreadable().items():
                why = str(error).removeprefix(f"{what}: ")
                yield Failure(self._scopes[name], name, what, why, waits=isinstance(error, SourceDenied))


def _progress(source: Source, end: Offset, waiting: bool) -> Iterator[Progress]:
    """Yield the progress of a source; of one that cannot be read, nobody knows whether all of it was."""
    for progress in source.progress(end):
        yield replace(progress, caught_up=False) if waiting else progress


def _set_back(before_s: int, now_s: int) -> bool:
    return before_s - now_s > STANDS_STILL_S


def _json(place: SourceOffsets) -> Mapping[str, Any]:
    there: Mapping[str, Any] = plain(place)  # as it comes back, so that equal offsets are equal
    return there


def _place(offset: Mapping[str, Any]) -> SourceOffsets:
    return made(offset, SourceOffsets)


def _up_to_loss(chunks: Iterator[Chunk], losses: list[DataLoss]) -> Iterator[Chunk]:
    """Yield `chunks`; what ends them early goes to `losses`, so that what was read is still scanned to its end."""
    try:
        yield from chunks
    except* DataLoss as group:
        losses += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]
