"""Batches that are at work for so long that somebody should know. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class AtWork(Struct, frozen=True):
    """The batch after batch `done` is at work since `since_s`; `overdue`: for as long as it may be."""

    done: int
    since_s: float
    overdue: bool = False


def watched(before: AtWork | None, active: bool, done: int, now_s: float, bound_s: float) -> AtWork | None:
    """Return what is at work now, None when nothing is, for a query that was looked at moments ago.

    Args:
        before: what was returned then.
        active: whether the query is planning or doing a batch.
        done: the number of the last batch that was done, -1 when none was.
        now_s: a time that only goes forward.
    """
    if not active:
        return None
    if before is None or before.done != done:
        return AtWork(done, now_s)
    return replace(before, overdue=now_s - before.since_s >= bound_s)
