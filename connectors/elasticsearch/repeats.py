"""Documents that come again: those that were updated, and those that a strategy by time looks at twice. Pure.

An update gives a document another number, so it is read again; what it says about the line is mostly the same. What is
forgotten here, or was read before a restart, comes a second time: an event is known by its source, its time and its line, so
it is the same event, and counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from connectors.elasticsearch.documents import IndexedLine

REMEMBERED = 200_000


class Repeats:
    """Remembers documents. `mark`s grow from slice to slice: what comes again in the slice in which it came first is read
    again, for that slice is done a second time."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self.first_mark: int | None = None  # of what is remembered: what came before it is not known here
        self._contents: dict[int, tuple[int, int]] = {}  # by document: what it said, and when it came first

    def new(self, lines: Iterable[IndexedLine], mark: int | None = None) -> Iterator[IndexedLine]:
        """Yield those of `lines` that are not known to have come before, or say something else now.

        Args:
            mark: of the slice that is read; None: the number of each document in its shard.
        """
        if self.first_mark is None:
            self.first_mark = mark
        for line in lines:
            key, content = hash((line.index, line.id)), hash((line.content, line.at))
            when = line.seq_no if mark is None else mark
            before = self._contents.get(key)
            if before is not None and before[0] == content and before[1] < when:
                continue
            if before is None or before[0] != content:
                self._contents[key] = content, when
            yield line
        if len(self._contents) > self._most:
            self.first_mark = mark  # the older ones are forgotten
            for key in list(islice(self._contents, len(self._contents) - self._most // 2)):
                del self._contents[key]
