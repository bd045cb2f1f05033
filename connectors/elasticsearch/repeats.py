"""Documents that come again: those that were updated, and those that a strategy by time looks at twice. Pure.

An update gives a document another number, so it is read again; what it says about the line is mostly the same. What is
forgotten here, or was read before a restart, comes a second time: an event is known by its source, its time and its line, so
it is the same event, and counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from connectors.elasticsearch.documents import IndexedLine

REMEMBERED = 200_000


class Repeats:
    """Remembers documents, by the slice in which they came first: its mark, which grows from slice to slice."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self.first_mark: int | None = None  # of what is remembered: what came before it is not known here
        self._mark = 0
        self._contents: dict[int, tuple[int, int]] = {}  # by document: hash of its content, mark of its slice

    @contextmanager
    def slice(self, mark: int) -> Iterator[None]:
        """Read a slice. What came in one that was not read to its end, or is read a second time, is forgotten: nothing came of
        it, and what it brought may be in the next one now."""
        self._forget_from(mark)
        self._mark = mark
        if self.first_mark is None:
            self.first_mark = mark
        try:
            yield
        except BaseException:
            self._forget_from(mark)
            raise

    def new(self, lines: Iterable[IndexedLine]) -> Iterator[IndexedLine]:
        """Yield those of `lines` that are not known to have come in another slice, or say something else now."""
        for line in lines:
            key, content = hash((line.index, line.id)), hash((line.content, line.at))
            before = self._contents.get(key)
            if before is not None and before[0] == content and before[1] < self._mark:
                continue
            if before is None or before[0] != content:
                self._contents[key] = content, self._mark
            yield line
        if len(self._contents) > self._most:
            self.first_mark = self._mark  # the older ones are forgotten
            for key in list(islice(self._contents, len(self._contents) - self._most // 2)):
                del self._contents[key]

    def _forget_from(self, mark: int) -> None:
        if mark <= self._mark:
            self._contents = {key: entry for key, entry in self._contents.items() if entry[1] < mark}
