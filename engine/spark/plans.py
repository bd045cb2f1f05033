"""Read, and remove, the plans of batches in a query's checkpoint: `offsets/N` holds the offsets that batch N reads up to,
`commits/N` marks it as done.

When the query starts, a batch with a plan and without a commit is repeated from the same plan. Once the plan is removed, Spark
plans the batch anew: that is exact as long as nothing of the batch is in the store, since Spark continues from the state of the
batch before. Source: Structured Streaming guide, Recovering from failures with checkpointing.
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
    """Return the id of the query that `checkpoint` belongs to; None before the first run."""
    return query_id(checkpoint) if (checkpoint / "metadata").exists() else None


def planned(checkpoint: Path) -> int:
    """Return the last batch that was planned; -1 when none was."""
    return _last(checkpoint / "offsets")


def done(checkpoint: Path) -> int:
    """Return the last batch that is done; -1 when none is."""
    return _last(checkpoint / "commits")


def at_work(checkpoint: Path) -> int | None:
    """Return the batch that was planned and is not done; None when there is none."""
    last = planned(checkpoint)
    return last if last > done(checkpoint) else None


def forget_plan(checkpoint: Path, is_stored: Callable[[int], bool]) -> int:
    """Remove the plan of the batch that was planned and not done; return the number of the batch that comes next.

    The plan stays when `is_stored` returns True for the batch. Together with the plan of batch 0 the state folder is removed:
    Spark expects none before the first batch. The query must not be running.
    """
    batch = at_work(checkpoint)
    if batch is None:
        return done(checkpoint) + 1
    if not is_stored(batch):
        (checkpoint / "offsets" / str(batch)).unlink()
        (checkpoint / "offsets" / f".{batch}.crc").unlink(missing_ok=True)
        if batch == 0:
            shutil.rmtree(checkpoint / "state", ignore_errors=True)
    return batch


def _last(folder: Path) -> int:
    """Return the highest batch with a file in `folder`; -1 when there is none."""
    paths = folder.iterdir() if folder.exists() else ()
    return max((int(path.name) for path in paths if path.name.isdigit()), default=-1)
