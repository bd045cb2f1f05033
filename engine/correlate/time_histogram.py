"""Histograms of time: how many events were in each cell of a second, or of 2, 4, 8 ... seconds where those are too many.

Merging is commutative: the grain is the finest that leaves at most MAX_CELLS, whatever the order in which cells came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

MAX_CELLS = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


class TimeHistogram(Struct, array_like=True):
    """Counts by the number of a cell, which is `grain` seconds wide; cell 0 begins at the epoch."""

    grain: int = 1
    counts: dict[int, int] = field(default_factory=dict)

    def merge(self, other: TimeHistogram) -> None:
        """Add the counts of `other`."""
        self._coarsen(max(self.grain, other.grain))
        for cell, count in other.counts.items():
            own = cell * other.grain // self.grain
            self.counts[own] = self.counts.get(own, 0) + count
        while len(self.counts) > MAX_CELLS:
            self._coarsen(self.grain * 2)

    def spans(self) -> Iterator[tuple[datetime, datetime, int]]:
        """Yield the begin, the exclusive end and the count of each cell, in order of time."""
        width = _SECOND * self.grain
        for cell in sorted(self.counts):
            begin = _EPOCH + width * cell
            yield begin, begin + width, self.counts[cell]

    def _coarsen(self, grain: int) -> None:
        if grain != self.grain:
            before, self.counts = self.counts, {}
            for cell, count in before.items():
                own = cell * self.grain // grain
                self.counts[own] = self.counts.get(own, 0) + count
            self.grain = grain


def cells(times: Iterable[datetime]) -> TimeHistogram:
    """Return the histogram of `times`."""
    histogram = TimeHistogram()
    histogram.merge(TimeHistogram(1, dict(Counter((at - _EPOCH) // _SECOND for at in times))))
    return histogram
