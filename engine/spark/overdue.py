"""Batches that are at work for so long that somebody should know. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class AtWork(Struct, frozen=True):
    """`batch` is at work since `since_s`; `overdue`: for as long as it may be."""

    batch: int
    since_s: float
    overdue: bool = False


def watched(before: AtWork | None, batch: int | None, now_s: float, bound_s: float) -> AtWork | None:
    """Return what is at work now, None when nothing is, for a query that was looked at moments ago.

    Args:
        before: what was returned then.
        batch: the batch that is planned and not done.
        now_s: a time that only goes forward.
    """
    if batch is None:
        return None
    if before is None or before.batch != batch:
        return AtWork(batch, now_s)
    return replace(before, overdue=now_s - before.since_s >= bound_s)
