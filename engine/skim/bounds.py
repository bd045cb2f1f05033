"""Which of many times side by side may be out of bounds (engine/parse/stamps): the parser judges each of those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np

from engine.parse.stamps import LATEST, bounds_of
from engine.ports import Chunk
from engine.skim.layouts import NO_TIME, to_us
from engine.skim.lines import Flags, Numbers


def out_of_bounds(
    at_us: Numbers, chunks: Sequence[Chunk], zoned: bool, taken: Callable[[int], datetime | None] = lambda _: None
) -> Flags:
    """Return which of some times, in microseconds since 1970, may be out of the bounds of their lines; NO_TIME is not.

    Args:
        chunks: what the lines are of.
        zoned: whether the stamps name their offset.
        taken: returns when the line of a time was taken, by position.
    """
    bounds = [bounds_of(chunk.labels) for chunk in chunks]
    latest = (each.latest(chunk.earliest(), zoned) for each, chunk in zip(bounds, chunks, strict=True))
    early: Flags = (at_us < to_us(max(each.earliest for each in bounds))) & (at_us != NO_TIME)
    late: Flags = at_us > to_us(min((*latest, LATEST)))
    strictest = min(bounds, key=lambda each: each.ahead)
    for each in np.flatnonzero(late).tolist() if any(chunk.records for chunk in chunks) else ():
        late[each] = at_us[each] > to_us(min(strictest.latest(taken(each), zoned), LATEST))
    return early | late
