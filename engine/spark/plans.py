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


def at_work(checkpoint: Path) -> int | None:
    """Return the number of the batch that was planned and is not done; None when there is none."""
    planned = _last(checkpoint / "offsets")
    return planned if planned > _last(checkpoint / "commits") else None


def next_batch(checkpoint: Path) -> int:
    """Return the number of the batch after the last one that is done."""
    return _last(checkpoint / "commits") + 1


def forget_plan(checkpoint: Path, is_in: Callable[[int], bool]) -> int:
    """Take out the plan of the batch that was planned and not done; return the number of the batch that comes next.

    The plan stays when `is_in` says that the store has the batch already. Before the first batch there is no state to go on
    from, and Spark wants none to be there. The query must not be running.
    """
    planned = at_work(checkpoint)
    if planned is None:
        return next_batch(checkpoint)
    if not is_in(planned):
        (checkpoint / "offsets" / str(planned)).unlink()
        (checkpoint / "offsets" / f".{planned}.crc").unlink(missing_ok=True)
        if planned == 0:
            shutil.rmtree(checkpoint / "state", ignore_errors=True)
    return planned


def _last(folder: Path) -> int:
    """Return the highest batch that `folder` has a file for; -1 when there is none."""
    found = folder.iterdir() if folder.exists() else ()
    return max((int(path.name) for path in found if path.name.isdigit()), default=-1)
