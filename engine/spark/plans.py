"""The plans of batches in a query's checkpoint: `offsets/N` says what batch N is to read, `commits/N` that it is done.

A batch whose plan is there and whose commit is not is done again from the same plan when the query starts. Taken out, the plan
is made anew: that is exact as long as nothing of the batch is in the store, since the state of the batch before is what Spark
goes on from. Source: Structured Streaming guide, Recovering from failures with checkpointing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path


def query_id(checkpoint: Path) -> str:
    """Return the id of the query that `checkpoint` belongs to: the same in every run."""
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])


def query_of(checkpoint: Path) -> str | None:
    """Return the id of the query that `checkpoint` belongs to, None when there was none yet."""
    return query_id(checkpoint) if (checkpoint / "metadata").exists() else None


def planned(checkpoint: Path) -> int:
    """Return the last batch that was planned; -1 when none was."""
    return _last(checkpoint / "offsets")


def done(checkpoint: Path) -> int:
    """Return the last batch that is done; -1 when none is."""
    return _last(checkpoint / "commits")


def at_work(checkpoint: Path) -> int | None:
    """Return the number of the batch that was planned and is not done; None when there is none."""
    last = planned(checkpoint)
    return last if last > done(checkpoint) else None


def forget_plan(checkpoint: Path, is_in: Callable[[int], bool]) -> int:
    """Take out the plan of the batch that was planned and not done; return the number of the batch that comes next.

    The plan stays when `is_in` says that the store has the batch already. Before the first batch there is no state to go on
    from, and Spark wants none to be there. The query must not be running.
    """
    batch = at_work(checkpoint)
    if batch is None:
        return done(checkpoint) + 1
    if not is_in(batch):
        (checkpoint / "offsets" / str(batch)).unlink()
        (checkpoint / "offsets" / f".{batch}.crc").unlink(missing_ok=True)
        if batch == 0:
            shutil.rmtree(checkpoint / "state", ignore_errors=True)
    return batch


def _last(folder: Path) -> int:
    """Return the highest batch that `folder` has a file for; -1 when there is none."""
    found = folder.iterdir() if folder.exists() else ()
    return max((int(path.name) for path in found if path.name.isdigit()), default=-1)
