"""The strategies `ingested` and `timestamp`: their offsets, slices and chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from connectors.elasticsearch.chunks import Chunking
from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.documents import DocumentReader, IndexedLine, moment
from connectors.elasticsearch.facts import DELAY_S, Strategy, overlap_of
from connectors.elasticsearch.repeats import Repeats
from connectors.elasticsearch.timed import TimeOffset, TimeRange, TimeReader, is_due, planned, time_ranges
from engine.codec import made, plain
from engine.errors import LateInput, SourceError
from engine.model.records import Progress
from engine.ports import Chunk, Offset

NEARLY_MISSED = 0.9  # share of the overlap; lines that come later than this are reported


class TimeReading:
    """Reads the indices that `pattern` matches by the time in a field. `final`: the input ends at the time of the first look.

    Args:
        overlap_s: for how long after its time a document that comes late is searched for; None: the default of the strategy.
    """

    def __init__(
        self,
        cluster: SearchCluster,
        pattern: str,
        stream: str,
        strategy: Strategy,
        query: Mapping[str, Any] | None,
        overlap_s: float | None = None,
        final: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._stream, self._strategy, self._final = stream, strategy, final
        self._reader = TimeReader(cluster, pattern, strategy, query)
        self._overlap_ms = int(overlap_of(strategy, overlap_s) * 1000)
        self._clock = clock
        self._bound_ms: int | None = None

    def initial(self, start: str) -> Offset:
        """Return the offset at which a first run starts."""
        now = self._now_ms()
        if start == "earliest":
            at = self._reader.earliest()
            begin = now if at is None else min(at, now)  # a stamp in the future would skip all documents until then
        else:
            begin = now if start == "latest" else int(datetime.fromisoformat(start).timestamp() * 1000)
        return plain(TimeOffset(begin, begin, begin))  # type: ignore[no-any-return]

    def taken_over(self, at_ms: int | None, place: int) -> Offset:
        """Return the offset that continues reading by another strategy: at `at_ms`, the earliest time of an unread document
        (None: all are read). Late documents are searched for from an overlap before it. `place`: the position in the stream."""
        latest = self._latest_ms()
        begin = latest if at_ms is None else min(at_ms, latest)
        return plain(TimeOffset(begin, begin, begin - self._overlap_ms, place=place))  # type: ignore[no-any-return]

    def read_from(self, end: Offset) -> int:
        """Return the earliest time, in milliseconds since 1970, of the documents that are still searched for at `end`."""
        offset = made(end, TimeOffset)
        return max(offset.floor, offset.to - self._overlap_ms)

    def latest(self, start: Offset, most: int | None) -> Offset:
        """Return the end of the next batch, with about `most` documents (None: no limit); `start` when there is none to
        read."""
        before, latest = made(start, TimeOffset), self._latest_ms()
        to, behind = self._reader.end(before.to, latest, most)
        if to == before.to:
            if not is_due(before, latest, self._overlap_ms):
                return start
            to = latest  # there is no document in between
        return plain(planned(before, to, latest, behind, self._overlap_ms))  # type: ignore[no-any-return]

    def slice(self, start: Offset, end: Offset) -> Mapping[str, Any] | None:
        """Return the slice of a batch; None when there is nothing to read."""
        before, after = made(start, TimeOffset), made(end, TimeOffset)
        wanted = time_ranges(before, after)
        places = {"place": before.place, "end": after.place}
        return {"ranges": plain(wanted), **places, "mark": before.to, "to": after.to} if wanted else None

    def chunks(self, slice_: Mapping[str, Any], reader: DocumentReader, repeats: Repeats) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises LateInput after the last one when lines came so late that others may be missed."""
        chunking, late_ms = Chunking(self._stream, slice_["place"]), list[float]()
        with repeats.slice(slice_["mark"]):
            for window in made(slice_["ranges"], list[TimeRange]):
                was_read = window.again and repeats.first_mark is not None and repeats.first_mark <= window.start
                for page in self._reader.pages(window):
                    lines = list(repeats.new(reader.lines(page)))
                    late_ms += [slice_["to"] - self._time_ms(line) for line in lines] if was_read else []
                    yield from chunking.chunks(lines)
        yield from chunking.reached(slice_["end"])
        nearly_missed = [by_ms for by_ms in late_ms if by_ms > NEARLY_MISSED * self._overlap_ms]
        if nearly_missed:
            raise LateInput(self._stream, len(nearly_missed), max(nearly_missed) / 1000, self._overlap_ms / 1000)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress at `end`, of the documents that existed when it was planned."""
        offset = made(end, TimeOffset)
        return [Progress(self._stream, offset.place, offset.place + offset.behind, caught_up=not offset.behind)]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return nothing: a search by time does not see indices that cannot be read."""
        return {}

    def _time_ms(self, line: IndexedLine) -> float:
        """Return the time of a line in the field of the strategy, in milliseconds since 1970."""
        ingested = moment(line.ingested) if self._strategy is Strategy.INGESTED else None
        return (line.at if ingested is None else ingested.timestamp()) * 1000

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _latest_ms(self) -> int:
        """Return the time up to which a batch may read now: later documents may not all be searchable yet."""
        if not self._final:
            return self._now_ms() - int(DELAY_S * 1000)
        self._bound_ms = self._bound_ms or self._now_ms()
        return self._bound_ms
