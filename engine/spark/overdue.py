"""Batches that are planned or at work for so long that somebody should know. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class AtWork(Struct, frozen=True):
    """`batch` is at work since `since_s`; `overdue`: for as long as it may be. `planning`: the sources are still asked what
    there is to read, and have been since the query reported this ("": it is planned)."""

    batch: int
    since_s: float
    overdue: bool = False
    planning: str = ""


def watched(before: AtWork | None, batch: int | None, now_s: float, bound_s: float, planning: str = "") -> AtWork | None:
    """Return what is at work now, None when nothing is, for a query that was looked at moments ago.

    Args:
        before: what was returned then.
        batch: the batch that is planned or being planned, and not done.
        now_s: a time that only goes forward.
        planning: the last report of the query, when the batch is being planned: many short plannings are none that is long.
    """
    if batch is None:
        return None
    if before is None or (before.batch, before.planning) != (batch, planning):
        return AtWork(batch, now_s, planning=planning)
    return replace(before, overdue=now_s - before.since_s >= bound_s)
