"""Decide whether a checkpoint and an incident store belong together, and what to do when they do not. Pure.

A batch is committed to the store first and to the checkpoint afterwards. So the store holds the last batch that is done, and at
most the one planned after it; anything else means that a file was removed, restored or copied.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Alignment(Struct, frozen=True):
    """How far a checkpoint and a store have got.

    Attributes:
        query: the id of the checkpoint's query; None when nothing was read yet.
        planned: the last batch that the checkpoint planned; -1 for none.
        done: the last batch that the checkpoint committed; -1 for none.
        belongs_to: the id of the store that the checkpoint was used with; None when the checkpoint does not record it.
        store: the id of the store.
        stored: the last batch of `query` in the store; -1 for none.
        written_at: when a batch of any query was last put into the store (ISO 8601); None for never.
    """

    query: str | None
    planned: int
    done: int
    belongs_to: str | None
    store: str
    stored: int
    written_at: str | None


class Course(Enum):
    """What the job does about an alignment."""

    GO_ON = "go on"
    READ_AGAIN = "the store forgets that it has the batches that the checkpoint has not planned"
    REFUSE = "end"


class Ruling(Struct, frozen=True):
    """What to do, and the sentence for the operator; empty when there is nothing to report."""

    course: Course
    sentence: str = ""


def decide(alignment: Alignment, checkpoint: str, store: str) -> Ruling:
    """Return what to do; `checkpoint` and `store` are their names in the sentence."""
    if alignment.query is None or (alignment.done < 0 and alignment.stored < 0):  # no batch was ever committed
        return _start_without_checkpoint(alignment, checkpoint, store)
    if alignment.belongs_to != alignment.store and (alignment.belongs_to is not None or alignment.stored < 0):
        why = f"the checkpoint {checkpoint} belongs to another incident store than {store}, which was removed or replaced"
        missing = "the incidents of what it has read are not in this one"
        return Ruling(Course.REFUSE, f"{why}: {missing}. Put that store back, or {_how_to_start_anew(alignment, checkpoint)}")
    if alignment.stored < alignment.done:
        why = f"the incident store {store} is older than the checkpoint {checkpoint}"
        missing = f"the findings of batches {alignment.stored + 1} to {alignment.done} are not in it"
        return Ruling(
            Course.REFUSE,
            f"{why}: {missing}. Put back the checkpoint of the same time, or {_how_to_start_anew(alignment, checkpoint)}",
        )
    if alignment.stored > alignment.planned:
        why = f"the checkpoint {checkpoint} is older than the incident store {store}"
        effect = f"the input of batches {alignment.planned + 1} to {alignment.stored} is read again"
        return Ruling(Course.READ_AGAIN, f"{why}: {effect}, and incidents that have ended since may be reported as open again")
    return Ruling(Course.GO_ON)


def _start_without_checkpoint(alignment: Alignment, checkpoint: str, store: str) -> Ruling:
    if alignment.written_at is None:
        return Ruling(Course.GO_ON)
    when = f"whose last batch was put in at {_to_the_second(alignment.written_at)}"
    effect = "sources are read from where `start` says, and what was logged in between is not read"
    return Ruling(Course.GO_ON, f"there is no checkpoint {checkpoint} for the incident store {store}, {when}: {effect}")


def _how_to_start_anew(alignment: Alignment, checkpoint: str) -> str:
    """Return how the operator starts with an empty checkpoint without missing input."""
    how = "rename it, or name another" if "://" in checkpoint else f"mv {checkpoint} {checkpoint}.old"
    set_aside = f"set the checkpoint aside ({how})"
    if alignment.written_at is None:
        return f"{set_aside} and start again: sources are read from where `start` says"
    start = f"`start: {_to_the_second(alignment.written_at)}` (when this store was last written)"
    return f"{set_aside}, give the sources {start}, and start again"


def _to_the_second(written_at: str) -> str:
    return f"{written_at[:19]}Z"
