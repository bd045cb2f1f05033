"""Pages of several shards, merged by time: the lines of one file lie in all of them. Pure.

Each shard gives its documents in the order in which it took them, so roughly by time. What is older than all that the shards
may still give is given on; what comes late is given on at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from connectors.elasticsearch.documents import NO_TIME, IndexedLine

HELD = 64 << 20  # bytes of lines that wait for others at most

Pages = Iterator[Sequence[IndexedLine]]


def merged(shards: Sequence[Pages]) -> Pages:
    """Yield the lines of all shards; with one shard, its pages as they are."""
    if len(shards) == 1:
        yield from shards[0]
        return
    reached = dict.fromkeys(range(len(shards)), NO_TIME)  # of the shards that may give more
    held: list[IndexedLine] = []
    while reached:
        number = min(reached, key=reached.__getitem__)
        page = next(shards[number], None)
        if page is None:
            del reached[number]
        else:
            held += page
            reached[number] = max((line.at for line in page), default=reached[number])
        horizon = min(reached.values(), default=float("inf"))
        ready = sorted((line for line in held if line.at < horizon), key=attrgetter("at"))
        held = [line for line in held if line.at >= horizon]
        if sum(len(line.data) for line in held) > HELD:
            ready, held = ready + sorted(held, key=attrgetter("at")), []
        if ready:
            yield ready
