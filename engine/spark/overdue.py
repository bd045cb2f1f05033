"""Tell when a batch has been planned or processed for so long that the operator should know. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class BatchActivity(Struct, frozen=True):
    """A batch that is not done.

    Attributes:
        since_s: when it was first seen, on a monotonic clock.
        overdue: whether it has lasted for as long as a batch may.
        planning: the time of the query's last report while the sources are still asked for their ends; empty once it is
            planned.
    """

    batch: int
    since_s: float
    overdue: bool = False
    planning: str = ""


def check_overdue(
    before: BatchActivity | None, batch: int | None, now_s: float, bound_s: float, planning: str = ""
) -> BatchActivity | None:
    """Return the activity of the current batch; None without one.

    Args:
        before: the result of the last call.
        batch: the batch that is planned or being planned, and not done; None for no such batch.
        now_s: the time on a monotonic clock.
        bound_s: how long a batch may last.
        planning: the time of the query's last report while the batch is being planned: each new report restarts the bound, so
            that many short plannings do not add up to a long one.
    """
    if batch is None:
        return None
    if before is None or (before.batch, before.planning) != (batch, planning):
        return BatchActivity(batch, now_s, planning=planning)
    return replace(before, overdue=now_s - before.since_s >= bound_s)
