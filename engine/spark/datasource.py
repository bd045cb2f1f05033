"""The adapter that makes sources (ports.Source) one streaming Python data source, whose offset holds the time as well.

`read()` runs in Spark's Python workers: it fetches a slice and scans it there, so raw lines never enter the JVM. Progress,
notices and ticks are functions of the offset and travel with the first partition of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from socket import gethostname
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from engine import __version__
from engine.clock import SteadyClock
from engine.codec import dumps, loads, made, plain
from engine.columns.audit import AuditResult
from engine.errors import DataLoss, LateInput, NoAnswer, SourceAway, SourceDenied, TocsinError
from engine.model.phrases import lasting
from engine.model.quarantine import DeadLetter
from engine.model.records import Progress, Tick
from engine.ports import Chunk, Offset, Source
from engine.spark.checkpoints import SharedMark
from engine.spark.combining import combine
from engine.spark.pace import FILE, LinePace, line_bound, read_pace
from engine.spark.rows import SCHEMA, BatchCounts, BatchRow, InputLoss, InputNotice, RowTuple, row, sent
from engine.spark.slices import scan, stages_of
from engine.spark.sources import SourceSpec
from engine.spark.spark_files import spark_file
from engine.spark.stalls import Failure, Stall, notices, stalled_sources, updated_stalls

SOURCE_FORMAT = "tocsin-source"
_LOG = "spark.log"
# Each tick costs a batch. After new input, verdicts wait for the next second; when all is quiet, silences last minutes:
TICK_S, ACTIVE_S, QUIET_TICK_S = 1, 3, 5
CLOCK_BACK_S = 60  # by how much a clock may go back while the offset's time waits for it; beyond that the time is set back


class ReadSettings(Struct, frozen=True):
    """How SOURCE_FORMAT reads.

    Attributes:
        plan_file: the plan, as `stages_of` reads it.
        parallelism: the number of tasks of a batch.
        max_lines: the most lines that each source gives to one batch; None for no bound.
        max_bytes: the same in bytes, by the size that its lines had lately.
        stalled_after_s: how long a source may be unreadable before that is an incident; None when the input has an end: then
            no source is waited for and there are no ticks.
        audited: some of the blocks that columns read are also read by the reference.
        on_cluster: tasks run on other machines: what only the driver's can read is read while a batch is planned.
        version: the version of tocsin in the driver.
        mark: a file in the checkpoint that every executor must see; None where none has to.
    """

    plan_file: str
    parallelism: int = 1
    max_lines: int | None = None
    stalled_after_s: float | None = None
    audited: bool = False
    on_cluster: bool = False
    version: str = ""
    mark: SharedMark | None = None
    max_bytes: int | None = None


class SourceOffsets(Struct, frozen=True):
    """The offsets of all sources of the job; a batch that is repeated has the same ones, and so the same time.

    Attributes:
        sources: the offset of each source by its name, as JSON.
        stalls: the sources that cannot be read.
        at_s: when these offsets were decided, in seconds since 1970.
        moved_s: when the offset of a source last changed, in seconds since 1970.
        clock: a sentence about a jump of the machine's clock; empty for none.
    """

    sources: Mapping[str, Any]
    stalls: tuple[Stall, ...] = ()
    at_s: int = 0
    moved_s: int = 0
    clock: str = ""


def source_options(sources: Sequence[SourceSpec], reading: ReadSettings) -> dict[str, str]:
    """Return the options that SOURCE_FORMAT reads `sources` by."""
    return {"sources": dumps(list(sources)), "reading": dumps(reading)}


class SourceStream(DataSource):  # type: ignore[misc]
    """All sources of a job as one stream of rows of SCHEMA. One stream for all of them, since each stream costs a planner
    process and a task per batch."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return SOURCE_FORMAT

    def schema(self) -> str:
        """Return the schema of the rows."""
        return SCHEMA

    def streamReader(self, schema: object) -> SourceReader:  # noqa: N802
        """Return the reader; `schema` is always SCHEMA."""
        return SourceReader(dict(self.options))


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches in the driver's planner process and reads them in the workers. Its offset is SourceOffsets as JSON."""

    def __init__(self, options: Mapping[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        specs = loads(lowered["sources"], list[SourceSpec])
        self._scopes = {spec.name: spec.scope for spec in specs}
        self._sources = {spec.name: spec.open() for spec in specs}
        self._read_here = frozenset(spec.name for spec in specs if spec.is_local)
        self._reading = loads(lowered["reading"], ReadSettings)
        self._live = self._reading.stalled_after_s is not None
        self._clock = SteadyClock()  # a wall clock that jumps would stop the ticks, or make every source seem silent at once

    def initialOffset(self) -> Mapping[str, Any]:  # noqa: N802
        """Return the offsets at which a first run starts, without the sources that cannot be read now: `latestOffset` asks them
        again."""
        sources, _ = self._ask(lambda name, source: source.initial(), frozenset(self._sources))
        return _to_json(SourceOffsets(sources))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: a source that is opened for bounded input bounds itself."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the bound on the lines of one batch."""
        lines = self._reading.max_lines
        return ReadMaxRows(lines) if lines else ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> Mapping[str, Any]:  # noqa: N802
        """Return the end of the next batch. A source that cannot be read now, or is no longer configured, keeps its offset."""
        lines = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        before = _from_json(start)
        configured, added = before.sources.keys() & self._sources.keys(), self._sources.keys() - before.sources.keys()
        pace = read_pace(spark_file(FILE).parent) if self._reading.max_bytes is not None else LinePace()

        def end(name: str, source: Source) -> Offset:
            start = before.sources[name]
            streams = (progress.source_id for progress in source.progress(start))
            return source.latest(start, line_bound(pace, streams, lines, self._reading.max_bytes))

        ends, away = self._ask(end, configured)
        begins, absent = self._ask(lambda name, source: source.initial(), added)
        jump = self._clock.check() if self._live else None
        now_s, bound_s = int(self._clock.now().timestamp()), self._reading.stalled_after_s or 0.0
        stalls = updated_stalls(before.stalls, [*away, *absent, *self._unreadable(configured)], now_s, bound_s)
        after = replace(before, sources={**begins, **before.sources, **ends}, stalls=stalls)
        after_json = _to_json(after)
        if after_json == start and jump is None and not self._due(before, now_s):
            return start
        at_s = now_s if _set_back(before.at_s, now_s) else max(now_s, before.at_s)
        moved_s = at_s if after_json["sources"] != start["sources"] else min(before.moved_s, at_s)
        return _to_json(replace(after, at_s=at_s, moved_s=moved_s, clock=str(jump or "")))

    def _due(self, offsets: SourceOffsets, now_s: int) -> bool:
        """Return whether a tick is due, so that a batch is needed without new input."""
        active = offsets.at_s < offsets.moved_s + ACTIVE_S
        due = now_s - offsets.at_s >= (TICK_S if active else QUIET_TICK_S)
        return self._live and (due or _set_back(offsets.at_s, now_s))

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of a batch: slices, and with the first one the notices, ticks and progress at the batch's
        end, and on a cluster the rows of sources that only this machine can read.

        A slice of a source belongs to the same partition in every batch, as far as the source divides itself alike; sources
        with one slice are spread.
        """
        before, after, parallelism = _from_json(start), _from_json(end), self._reading.parallelism
        tasks: list[list[Any]] = [[] for _ in range(parallelism)]
        first_rows = [row(scope, notice) for scope, notice in notices(before.stalls, after.stalls, after.at_s)]
        first_rows += [row(scope, notice) for scope, notice in self._clock_notices(before, after)]
        first_rows += [row(scope, tick) for tick in self._ticks(before, after) for scope in sorted({*self._scopes.values()})]
        waiting = stalled_sources(after.stalls)
        for first, (name, source) in enumerate(self._sources.items()):
            if name not in before.sources or name not in after.sources:
                continue  # new in the configuration: it starts with the next batch
            position, end_position = before.sources[name], after.sources[name]
            slices = source.partitions(position, end_position, parallelism)
            if self._reading.on_cluster and name in self._read_here:
                first_rows += self._rows(name, slices, datetime.fromtimestamp(after.at_s, UTC))
            else:
                for number, slice_ in enumerate(slices):
                    tasks[(first + number) % parallelism].append((name, slice_))
            first_rows += [row(self._scopes[name], progress) for progress in _progress(source, end_position, name in waiting)]
        return [InputPartition((after.at_s, slices, [] if n else first_rows)) for n, slices in enumerate(tasks)]

    def _ticks(self, before: SourceOffsets, after: SourceOffsets) -> Iterator[Tick]:
        """Yield the processing time of a batch that ends at `after` as data: at most one tick."""
        if self._live and after.at_s != before.at_s:
            yield Tick(datetime.fromtimestamp(after.at_s, UTC), set_back=after.at_s < before.at_s)

    def _clock_notices(self, before: SourceOffsets, after: SourceOffsets) -> Iterator[tuple[str, InputNotice]]:
        """Yield the notices about the machine's clock, with the one scope that gets them (the first by name)."""
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
        """Yield the rows of a partition. Lost lines become an InputLoss instead of an error, so that the job goes on.

        Raises TocsinError on a machine with another version of tocsin, or one that does not share the checkpoint.
        """
        if self._reading.on_cluster and self._reading.version != __version__:
            raise TocsinError(
                f"executor {gethostname()} has tocsin {__version__}, and the driver {self._reading.version}: install the same"
                " version on all machines"
            )
        if self._reading.mark is not None:
            self._reading.mark.check()
        at_s, slices, first_rows = partition.value
        for name, slice_ in slices:
            yield from self._rows(name, [slice_], datetime.fromtimestamp(at_s, UTC))
        yield from first_rows

    def _rows(self, name: str, slices: Iterable[Mapping[str, Any]], at: datetime) -> Iterator[RowTuple]:
        for slice_ in slices:
            yield from (sent(self._scopes[name], item) for item in self._items(name, slice_, at))

    def _items(self, name: str, slice_: Mapping[str, Any], at: datetime) -> Iterator[BatchRow]:
        losses: list[DataLoss] = []
        late: list[LateInput] = []
        stages = stages_of(self._reading.plan_file)
        lost_before = stages.lost_matches
        chunks = _up_to_loss(self._sources[name].chunks(slice_), losses, late)
        for item in combine(scan(chunks, stages, self._reading.audited)):
            yield replace(item, at=at) if isinstance(item, DeadLetter) else item
            if isinstance(item, AuditResult):
                yield from (InputNotice(at, sentence) for sentence in item.differences)
        if stages.lost_matches > lost_before:
            yield InputNotice(
                at, f"Hyperscan lost matches in '{name}' that RE2 finds: RE2 is used from now on; see {_LOG} and report it"
            )
        yield from (InputNotice(at, str(error)) for error in late)
        yield from (BatchCounts(late={error.source_id: error.lines}) for error in late)
        yield from (InputLoss(loss.source_id, loss.lost_from, loss.lost_to, loss.why, at) for loss in losses)

    def _ask(
        self, question: Callable[[str, Source], Offset], names: Set[str]
    ) -> tuple[Mapping[str, Offset], Sequence[Failure]]:
        """Return the answers of the sources `names` by name, and a failure for each that cannot be read now.

        Raises SourceAway when the input has an end: then no source is waited for.
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
        """Yield a failure for each resource that a source skipped. Bounded input is checked before the job begins instead."""
        for name in sorted(names) if self._live else ():
            for resource, error in self._sources[name].unreadable().items():
                why = str(error).removeprefix(f"{resource}: ")
                asked = isinstance(error, NoAnswer)
                waits = asked or isinstance(error, SourceDenied)
                yield Failure(self._scopes[name], name, resource, why, waits, asked)


def _progress(source: Source, end: Offset, waiting: bool) -> Iterator[Progress]:
    """Yield the progress of a source; while it cannot be read (`waiting`), it does not count as caught up."""
    for progress in source.progress(end):
        yield replace(progress, caught_up=False) if waiting else progress


def _set_back(before_s: int, now_s: int) -> bool:
    return before_s - now_s > CLOCK_BACK_S


def _to_json(offsets: SourceOffsets) -> Mapping[str, Any]:
    value: Mapping[str, Any] = plain(offsets)  # as Spark hands it back, so that equal offsets compare equal
    return value


def _from_json(offset: Mapping[str, Any]) -> SourceOffsets:
    return made(offset, SourceOffsets)


def _up_to_loss(chunks: Iterator[Chunk], losses: list[DataLoss], late: list[LateInput]) -> Iterator[Chunk]:
    """Yield `chunks`; append the errors that end them to `losses` and `late`, so that the chunks before are still scanned."""
    try:
        yield from chunks
    except* DataLoss as group:
        losses += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]
    except* LateInput as group:
        late += [error for error in group.exceptions if isinstance(error, LateInput)]
