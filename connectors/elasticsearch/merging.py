"""Merge the pages of several shards by time: the lines of one file may be in all of them. Pure.

Each shard returns its documents in the order in which it stored them, so roughly by time. A line is passed on once every shard
has reached a later time; a line that comes late is passed on at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from connectors.elasticsearch.documents import NO_TIME, IndexedLine

PENDING_BYTES = 64 << 20  # of lines that wait for other shards, at most

Pages = Iterator[Sequence[IndexedLine]]


def merged(shards: Sequence[Pages]) -> Pages:
    """Yield the lines of all shards, each page in order of time; the pages of a single shard are not changed."""
    if len(shards) == 1:
        yield from shards[0]
        return
    reached = dict.fromkeys(range(len(shards)), NO_TIME)  # by shard that may have more: the latest time so far
    pending: list[IndexedLine] = []
    while reached:
        number = min(reached, key=reached.__getitem__)
        page = next(shards[number], None)
        if page is None:
            del reached[number]
        else:
            pending += page
            reached[number] = max((line.at for line in page), default=reached[number])
        horizon = min(reached.values(), default=float("inf"))
        ready = sorted((line for line in pending if line.at < horizon), key=attrgetter("at"))
        pending = [line for line in pending if line.at >= horizon]
        if sum(len(line.data) for line in pending) > PENDING_BYTES:
            ready, pending = ready + sorted(pending, key=attrgetter("at")), []
        if ready:
            yield ready
