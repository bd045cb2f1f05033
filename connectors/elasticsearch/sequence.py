"""Read by sequence numbers: the operations of a shard up to the global checkpoint of its primary, page after page.

The checkpoint is read first, and then the index is refreshed: a checkpoint counts indexed operations, which cannot be searched
before a refresh. The highest number that can be searched is no bound, because an operation with a lower number may not have
arrived yet. Operations above the checkpoint may be rolled back when the primary fails. Source: Elasticsearch,
get-global-checkpoints and refresh APIs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from connectors.elasticsearch.answers import DocumentHit, SearchPage
from connectors.elasticsearch.cluster import NAMES_AT_ONCE, IndexGone, SearchCluster
from connectors.elasticsearch.facts import IndexFacts, lag_s
from connectors.elasticsearch.offsets import Checkpoints, LostOperations, SequenceRange, short
from connectors.elasticsearch.paging import MOST_IN_PAGE, Paging
from engine.errors import SourceDenied

SETTINGS_AGE_S = 30.0  # after which the settings of indices are read again

_READ = {"sort": ["_seq_no"], "track_total_hits": False, "seq_no_primary_term": True}


class CheckpointWatch:
    """Determines up to which operations the indices of a pattern can be read.

    Args:
        clock: monotonic, in seconds.
        sleep: waits for a number of seconds; called for bounded input.

    Attributes:
        lags: the privilege to refresh indices is missing.
    """

    def __init__(
        self,
        cluster: SearchCluster,
        pattern: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._pattern = cluster, pattern
        self._clock, self._sleep = clock, sleep
        self._indices: dict[str, IndexFacts] = {}  # by uuid
        self._looked_at = float("-inf")
        self._visible: dict[str, Checkpoints] = {}  # by uuid: the checkpoints at the last refresh
        self._history: deque[tuple[float, Sequence[Checkpoints]]] = deque()
        self.lags = False

    def exists(self) -> frozenset[str]:
        """Return the short ids of all indices, including closed ones and those that no node has now."""
        self._indices = {index.uuid: index for index in self._cluster.indices(self._pattern)}
        self._looked_at = self._clock()
        return frozenset(map(short, self._indices))

    @property
    def indices(self) -> Sequence[IndexFacts]:
        """The facts about the indices."""
        return list(self._indices.values())

    def now(self, wait: bool = False) -> list[Checkpoints]:
        """Return the checkpoints up to which all operations can be searched, sorted by name.

        Without the privilege to refresh indices, these are checkpoints of so long ago that every index has refreshed itself.

        Args:
            wait: return the present checkpoints, after waiting for that time.
        """
        if self._clock() - self._looked_at > SETTINGS_AGE_S:
            self.exists()
        checkpoints = self._checkpoints()
        if not self.lags:
            try:
                self._make_visible(checkpoints)
            except SourceDenied:
                self.lags = True
        return self._lagging(checkpoints, wait) if self.lags else checkpoints

    def _checkpoints(self) -> list[Checkpoints]:
        checkpoints = self._cluster.checkpoints(self._pattern, self._facts_of)
        return sorted(filter(self._is_readable, checkpoints), key=lambda index: index.name)

    def _is_readable(self, index: Checkpoints) -> bool:
        facts = self._facts_of(index.name, index.uuid)
        return facts.readable and facts.numbered

    def _facts_of(self, name: str, uuid: str) -> IndexFacts:
        if uuid not in self._indices or not self._indices[uuid].is_open:
            self.exists()
        return self._indices.get(uuid) or IndexFacts(name, uuid)

    def _make_visible(self, checkpoints: Sequence[Checkpoints]) -> None:
        names = [index.name for index in checkpoints if not self._is_visible(index) and any(at != -1 for at in index.at)]
        if names:
            self._cluster.refresh(names)
        self._visible = {index.uuid: index for index in checkpoints}

    def _is_visible(self, index: Checkpoints) -> bool:
        """Return whether the index did not change since the last refresh. The same numbers of another history are other
        operations."""
        before = self._visible.get(index.uuid)
        return before is not None and (before.at, before.histories) == (index.at, index.histories)

    def _lagging(self, checkpoints: Sequence[Checkpoints], wait: bool) -> list[Checkpoints]:
        """Return the newest checkpoints that are old enough; an empty list when none are."""
        visible = [index for index in self._indices.values() if index.readable and index.refresh_s != 0]
        lag = lag_s(visible)
        self._awaken([index.name for index in visible if index.refresh_s is None])
        if wait:
            self._sleep(lag)
        self._history.append((self._clock() - (lag if wait else 0.0), checkpoints))
        ready: Sequence[Checkpoints] = ()
        while self._history and self._history[0][0] <= self._clock() - lag:
            ready = self._history.popleft()[1]
        if ready:
            self._history.appendleft((self._clock() - lag, ready))
        return [index for index in ready if self._facts_of(index.name, index.uuid).refresh_s != 0]

    def _awaken(self, names: Sequence[str]) -> None:
        """Search these indices, which refresh themselves only while they are searched."""
        for at in range(0, len(names), NAMES_AT_ONCE):
            self._cluster.count(",".join(names[at : at + NAMES_AT_ONCE]), {"match_all": {}}, most=1)


class ShardReader:
    """Reads ranges of a shard. `query` selects documents in them; None: all."""

    def __init__(self, cluster: SearchCluster, query: Mapping[str, Any] | None, page_bound: int = MOST_IN_PAGE) -> None:
        self._cluster, self._query = cluster, query
        self._paging = Paging(page_bound)

    def pages(self, wanted: SequenceRange) -> Iterator[Sequence[DocumentHit] | LostOperations]:
        """Yield the documents of a range in pages. If the index is deleted meanwhile, the last item is the loss of the rest.

        Raises SourceAway when a page fails repeatedly.
        """
        last = wanted.after
        while last < wanted.to:
            try:
                page, is_last = self._paging.next(partial(self._page, wanted, last))
            except IndexGone as error:
                yield LostOperations(wanted.index, wanted.shard, last, wanted.to, str(error))
                return
            if page.hits:
                yield page.hits
            last = wanted.to if is_last else page.hits[-1].sort[0]

    def _page(self, wanted: SequenceRange, after: int, size: int) -> SearchPage:
        numbered = {"range": {"_seq_no": {"gt": after, "lte": wanted.to}}}
        query = numbered if self._query is None else {"bool": {"filter": [numbered, self._query]}}
        return self._cluster.shard_page(wanted.index, wanted.shard, {**_READ, "size": size, "query": query})
