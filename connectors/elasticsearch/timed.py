"""Read by a time field when sequence numbers are not available: `event.ingested`, or as a last resort `@timestamp`.

A window of time is read once it is so far in the past that the documents indexed in it can be searched. Documents that become
visible later are read by a sweep: from time to time the overlap before the window is read again, and documents that were read
before are recognised by their ids. A window is read from a point in time, a view of the index that does not change between
pages; when it is lost, the window is read again from its beginning. Source: Elasticsearch, paginate search results and point in
time APIs; OpenSearch, point in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from connectors.elasticsearch.answers import DocumentHit, SearchPage
from connectors.elasticsearch.cluster import PIT_KEEP_ALIVE, PitLost, SearchCluster
from connectors.elasticsearch.facts import ServerVersion, Strategy
from connectors.elasticsearch.paging import Paging
from engine.errors import SourceAway

PAGE = 2000
TRIES = 3
SWEEPS = 5  # in each overlap
SHORTEST_MS = 1
PLACES_MS = 1000  # positions in a millisecond
NANOS_IN_MS = 1_000_000
MISSING = (1 << 63) - 1  # the sort value of a document without a time
MOST_NEAR = 200  # documents on each side of one
NEAR_MS = 24 * 3600 * 1000
NEAR_ANSWER_S = 5.0  # a reader waits for it
MOST_NAMESAKES = 10  # documents of one id, each in another index


class TimeOffset(Struct, frozen=True):
    """The position after the documents of times from `floor` to `to`. Times are milliseconds since 1970.

    `swept`: the time up to which the last sweep for late documents went. `again_from`: where the sweep of the batch that ends
    here begins; -1 without one. `place`: the position in the stream. `behind`: how many documents existed and were not read.
    """

    to: int
    swept: int
    floor: int
    again_from: int = -1
    place: int = 0
    behind: int = 0


class TimeRange(Struct, frozen=True):
    """Documents of times [start, end), in milliseconds since 1970. `again`: the range was read before."""

    start: int
    end: int
    again: bool = False


def is_due(before: TimeOffset, latest: int, overlap_ms: int) -> bool:
    """Return whether a sweep is due. `latest`: the time up to which a batch may read now. Documents older than the overlap are
    not searched for any more."""
    return latest - before.swept >= overlap_ms // SWEEPS and before.to > latest - overlap_ms


def planned(before: TimeOffset, to: int, latest: int, behind: int, overlap_ms: int) -> TimeOffset:
    """Return the offset of a batch that reads up to `to`, with a sweep if one is due."""
    place = before.place + (to - before.to) * PLACES_MS
    if not is_due(before, latest, overlap_ms):
        swept = before.swept if before.to > latest - overlap_ms else to
        return TimeOffset(to, swept, before.floor, -1, place, behind)
    return TimeOffset(to, to, before.floor, max(before.floor, before.swept - overlap_ms), place, behind)


def time_ranges(before: TimeOffset, after: TimeOffset) -> list[TimeRange]:
    """Return the ranges to read between two successive offsets, oldest first."""
    windows = [TimeRange(after.again_from, before.to, again=True), TimeRange(before.to, after.to)]
    return [window for window in windows if 0 <= window.start < window.end]


class TimeReader:
    """Reads the documents that `pattern` matches in order of the strategy's field. `query` selects documents; None: all."""

    def __init__(self, cluster: SearchCluster, pattern: str, strategy: Strategy, query: Mapping[str, Any] | None) -> None:
        self._cluster, self._pattern = cluster, pattern
        self._field, self._query = strategy.field, query

    def end(self, start: int, latest: int, most: int | None) -> tuple[int, int]:
        """Return the time, at most `latest`, up to which a batch from `start` reads, and how many documents it leaves to the
        next.

        The time is `start` when there is no document. A batch has about `most` documents (None: no limit).
        """
        if latest <= start:
            return start, 0
        total = self.count(TimeRange(start, latest))
        if not total:
            return start, 0
        end, within = latest, total
        while most is not None and within > most and end - start > SHORTEST_MS:
            end = start + max(SHORTEST_MS, (end - start) // 2)
            within = self.count(TimeRange(start, end))
        while not within and end < latest:  # all documents are in the later half
            end = min(latest, end + (end - start))
            within = self.count(TimeRange(start, end))
        return end, total - within

    def earliest(self) -> int | None:
        """Return the time of the oldest document in milliseconds since 1970; None when there is none."""
        body = {"size": 1, "sort": [self._by_time()], "track_total_hits": False, "_source": False, **self._selected([])}
        hits = self._cluster.page(_keywords(body), self._pattern).hits
        return hits[0].sort[0] // NANOS_IN_MS if hits and hits[0].sort[0] not in (None, MISSING) else None

    def count(self, within: TimeRange) -> int:
        """Return the number of documents of these times."""
        return self._cluster.count(self._pattern, self._selected([self._of(within)])["query"])

    def document(self, index: str, id: str) -> DocumentHit | None:
        """Return the document with this id that was in `index`, whose name may be another by now; None when there is none."""
        hits = self._near("asc", MOST_NAMESAKES, [{"ids": {"values": [id]}}])
        return next((hit for hit in hits if hit.index == index), hits[0] if hits else None)

    def near(self, document: DocumentHit, alike: Sequence[Mapping[str, Any]]) -> list[DocumentHit]:
        """Return a document and those around its time, oldest first: of those that `alike` selects, at most MOST_NEAR on each
        side, within NEAR_MS. One that has no time is alone."""
        by_place = {(document.index, document.id): document}
        if document.sort[0] in (None, MISSING):
            return [document]
        at = document.sort[0] // NANOS_IN_MS
        for order, within in (("desc", TimeRange(at - NEAR_MS, at + 1)), ("asc", TimeRange(at, at + NEAR_MS))):
            by_place |= {(hit.index, hit.id): hit for hit in self._near(order, MOST_NEAR, [self._of(within), *alike])}
        return sorted(by_place.values(), key=lambda hit: (hit.sort[0], hit.index, hit.seq_no))

    def _near(self, order: str, most: int, filters: Sequence[Mapping[str, Any]]) -> list[DocumentHit]:
        """Return the first documents in an order of time."""
        body = {"size": most, "sort": [self._by_time(order)], "track_total_hits": False, "seq_no_primary_term": True}
        return self._cluster.page({**body, **self._selected(filters)}, self._pattern, NEAR_ANSWER_S).hits

    def pages(self, within: TimeRange) -> Iterator[Sequence[DocumentHit]]:
        """Yield the documents of a range of times in pages, oldest first. When the point in time is lost, reading begins again,
        and some documents come twice.

        Raises SourceAway when it is lost TRIES times.
        """
        for left in range(TRIES - 1, -1, -1):
            try:
                yield from self._pages_of_pit(within)
            except PitLost as lost:
                if not left:
                    raise SourceAway(self._cluster.place, str(lost)) from None
            else:
                return

    def _pages_of_pit(self, within: TimeRange) -> Iterator[Sequence[DocumentHit]]:
        pit = self._cluster.open_pit(self._pattern)
        sort = [self._by_time(), *_tiebreak(self._cluster.server())]
        body: dict[str, Any] = {"sort": sort, "track_total_hits": False, **self._selected([self._of(within)])}
        paging = Paging(PAGE)
        try:
            while True:
                page, is_last = paging.next(partial(self._page, {**body, "pit": {"id": pit, "keep_alive": PIT_KEEP_ALIVE}}))
                pit = page.pit_id or pit
                if page.hits:
                    yield page.hits
                if is_last:
                    return
                body["search_after"] = page.hits[-1].sort
        finally:
            self._cluster.close_pit(pit)

    def _page(self, body: Mapping[str, Any], size: int) -> SearchPage:
        return self._cluster.page({**body, "size": size})

    def _of(self, within: TimeRange) -> Mapping[str, Any]:
        bounds = {"gte": within.start, "lt": within.end, "format": "epoch_millis"}
        return {"range": {self._field: bounds}}

    def _selected(self, filters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        wanted = [*filters, *([self._query] if self._query is not None else [])]
        return {"query": {"bool": {"filter": wanted}} if wanted else {"match_all": {}}}

    def _by_time(self, order: str = "asc") -> Mapping[str, Any]:
        return {self._field: {"order": order, "numeric_type": "date_nanos", "unmapped_type": "date"}}  # OpenSearch: no `format`


def _tiebreak(server: ServerVersion) -> Sequence[Any]:
    """Return the sort key for documents of one time. Elasticsearch provides `_shard_doc` in a point in time, OpenSearch since
    3.3 and only if it is named."""
    if not server.is_opensearch:
        return ["_shard_doc"]
    return ["_shard_doc"] if server.numbers >= (3, 3) else [{"_id": "asc"}]


def _keywords(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body with the names of the client's keywords."""
    return {name.removeprefix("_"): value for name, value in body.items()}
