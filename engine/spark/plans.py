"""Read, and remove, the plans of batches in a query's checkpoint: `offsets/N` holds the offsets that batch N reads up to,
`commits/N` marks it as done.

When the query starts, a batch with a plan and without a commit is repeated from the same plan. Once the plan is removed, Spark
plans the batch anew: that is exact as long as nothing of the batch is in the store, since Spark continues from the state of the
batch before. Source: Structured Streaming guide, Recovering from failures with checkpointing.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from engine.errors import TocsinError
from engine.spark.checkpoints import CheckpointFiles


def query_id(checkpoint: CheckpointFiles) -> str:
    """Return the id of the query that `checkpoint` belongs to: the same in every run. Raises TocsinError before the first
    run."""
    query = query_of(checkpoint)
    if query is None:
        raise TocsinError(f"there is no query in the checkpoint {checkpoint.location}")
    return query


def query_of(checkpoint: CheckpointFiles) -> str | None:
    """Return the id of the query that `checkpoint` belongs to; None before the first run."""
    text = checkpoint.text("metadata")
    return None if text is None else str(json.loads(text)["id"])


def planned(checkpoint: CheckpointFiles) -> int:
    """Return the last batch that was planned; -1 when none was."""
    return _last(checkpoint, "offsets")


def done(checkpoint: CheckpointFiles) -> int:
    """Return the last batch that is done; -1 when none is."""
    return _last(checkpoint, "commits")


def at_work(checkpoint: CheckpointFiles) -> int | None:
    """Return the batch that was planned and is not done; None when there is none."""
    last = planned(checkpoint)
    return last if last > done(checkpoint) else None


def forget_plan(checkpoint: CheckpointFiles, is_stored: Callable[[int], bool]) -> int:
    """Remove the plan of the batch that was planned and not done; return the number of the batch that comes next.

    The plan stays when `is_stored` returns True for the batch. Together with the plan of batch 0 the state folder is removed:
    Spark expects none before the first batch. The query must not be running.
    """
    batch = at_work(checkpoint)
    if batch is None:
        return done(checkpoint) + 1
    if not is_stored(batch):
        checkpoint.remove(f"offsets/{batch}")
        if checkpoint.is_local:
            checkpoint.remove(f"offsets/.{batch}.crc")
        if batch == 0:
            checkpoint.remove("state")
    return batch


def _last(checkpoint: CheckpointFiles, folder: str) -> int:
    """Return the highest batch with a file in `folder`; -1 when there is none."""
    return max((int(name) for name in checkpoint.names(folder) if name.isdigit()), default=-1)
