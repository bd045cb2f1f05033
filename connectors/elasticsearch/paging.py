"""The size of pages: as many documents as the server returns and the process can hold, whatever their size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from connectors.elasticsearch.answers import DocumentHit, SearchPage
from engine.errors import SourceAway

FIRST_PAGE = 200  # of documents of unknown size
PAGE_BYTES = 4 << 20  # wanted size of a page
MOST_IN_PAGE = 10_000
GROWTH = 10  # times the page before
TRIES = 4
RETRY_AFTER_S = 0.2


class Paging:
    """Requests one page after the other, at most `most` documents in each."""

    def __init__(self, most: int = MOST_IN_PAGE) -> None:
        self._most = min(most, MOST_IN_PAGE)
        self._size = min(FIRST_PAGE, self._most)

    def next(self, request: Callable[[int], SearchPage]) -> tuple[SearchPage, bool]:
        """Return the page that `request` returns for a number of documents, and whether it is the last.

        A page that fails is requested again, smaller: documents may be too large for the memory of the server. Raises
        SourceAway after TRIES.
        """
        for left in range(TRIES - 1, -1, -1):
            size = self._size
            try:
                page = request(size)
            except SourceAway:
                self._most, self._size = max(1, size // 2), max(1, size // GROWTH)
                if not left:
                    raise
                time.sleep(RETRY_AFTER_S)
            else:
                self._fit(page.hits)
                return page, len(page.hits) < size
        raise AssertionError

    def _fit(self, hits: Sequence[DocumentHit]) -> None:
        """Set the size of the next page to PAGE_BYTES of documents like these."""
        if hits:
            mean = sum(len(memoryview(hit.source)) for hit in hits) / len(hits)
            self._size = max(1, min(self._most, self._size * GROWTH, int(PAGE_BYTES / max(1.0, mean))))
