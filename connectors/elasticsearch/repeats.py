"""Leave out documents that were read before: updated ones, and those in the overlap of a strategy by time. Pure.

An update gives a document another sequence number, so it is read again, mostly with the same line. A document that was dropped
from the cache here, or was read before a restart, is passed on again. That does no harm: an event is identified by its source,
its time and its line, so it is the same event and counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from connectors.elasticsearch.documents import IndexedLine

CACHED = 200_000


class Repeats:
    """The documents read lately, each with the mark of the slice in which it was read first. Marks grow from slice to slice.

    `first_mark`: the mark of the first slice whose documents are all in the cache; None before the first slice.
    """

    def __init__(self, most: int = CACHED) -> None:
        self._most = most
        self.first_mark: int | None = None
        self._mark = 0
        self._contents: dict[int, tuple[int, int]] = {}  # by document: hash of its content, mark of its slice

    @contextmanager
    def slice(self, mark: int) -> Iterator[None]:
        """Read a slice with this mark. Documents of a slice that failed, or is read a second time, are dropped: that slice had
        no effect, and its documents may be in the next one now."""
        self._drop_from(mark)
        self._mark = mark
        if self.first_mark is None:
            self.first_mark = mark
        try:
            yield
        except BaseException:
            self._drop_from(mark)
            raise

    def new(self, lines: Iterable[IndexedLine]) -> Iterator[IndexedLine]:
        """Yield the lines of documents that were not in an earlier slice, or have changed since."""
        for line in lines:
            key, content = hash((line.index, line.id)), hash((line.content, line.at))
            before = self._contents.get(key)
            if before is not None and before[0] == content and before[1] < self._mark:
                continue
            if before is None or before[0] != content:
                self._contents[key] = content, self._mark
            yield line
        if len(self._contents) > self._most:
            self.first_mark = self._mark  # older documents are dropped
            for key in list(islice(self._contents, len(self._contents) - self._most // 2)):
                del self._contents[key]

    def _drop_from(self, mark: int) -> None:
        if mark <= self._mark:
            self._contents = {key: entry for key, entry in self._contents.items() if entry[1] < mark}
