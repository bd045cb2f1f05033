"""How many documents are asked for at once: as many as a server gives and a process holds, whatever their size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from connectors.elasticsearch.answers import DocumentHit, SearchPage
from engine.errors import SourceAway

FIRST_PAGE = 200  # of documents of unknown size
PAGE_BYTES = 4 << 20  # of documents in a page
MOST_IN_PAGE = 10_000
GROWTH = 10  # times the page before
TRIES = 4
AGAIN_S = 0.2


class Paging:
    """Asks for one page after the other, at most `most` documents in each."""

    def __init__(self, most: int = MOST_IN_PAGE) -> None:
        self._most = min(most, MOST_IN_PAGE)
        self._size = min(FIRST_PAGE, self._most)

    def next(self, question: Callable[[int], SearchPage]) -> tuple[SearchPage, bool]:
        """Return the answer to `question`, which is given the size of the page, and whether it is the last.

        A page that is refused is asked for again, smaller: documents may be too large for the memory of the server. Raises
        SourceAway after TRIES.
        """
        for left in range(TRIES - 1, -1, -1):
            size = self._size
            try:
                page = question(size)
            except SourceAway:
                self._most, self._size = max(1, size // 2), max(1, size // GROWTH)
                if not left:
                    raise
                time.sleep(AGAIN_S)
            else:
                self._fit(page.hits)
                return page, len(page.hits) < size
        raise AssertionError

    def _fit(self, hits: Sequence[DocumentHit]) -> None:
        """Let the next page hold as many documents like these as are PAGE_BYTES."""
        if hits:
            mean = sum(len(memoryview(hit.source)) for hit in hits) / len(hits)
            self._size = max(1, min(self._most, self._size * GROWTH, int(PAGE_BYTES / max(1.0, mean))))
