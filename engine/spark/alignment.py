"""Whether a checkpoint and an incident store belong together, and what to do where they do not. Pure.

A batch is put into the store first and is done in the checkpoint afterwards. So the store has the last batch that is done, and
at most the one that was planned after it; anything else comes of a file that was taken away, put back or copied.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Alignment(Struct, frozen=True):
    """How far a checkpoint and a store are.

    `query` is that of the checkpoint, None when it has read nothing; `planned` and `done` are its last batches, -1: none.
    `belongs_to` is the id of the store that it was used with, None when that is not written down. `stored` is the last batch
    of this query in the store `store`, -1: none. `written_at`: when any batch was last put into it (ISO 8601), None: never.
    """

    query: str | None
    planned: int
    done: int
    belongs_to: str | None
    store: str
    stored: int
    written_at: str | None


class Course(Enum):
    """What is to be done."""

    GO_ON = "go on"
    READ_AGAIN = "the store forgets that it has the batches that the checkpoint has not planned"
    REFUSE = "end"


class Ruling(Struct, frozen=True):
    """What to do, and what to say of it; an empty sentence where there is nothing to say."""

    course: Course
    sentence: str = ""


def ruled(alignment: Alignment, checkpoint: str, store: str) -> Ruling:
    """Return what to do with a checkpoint and a store, which the sentence names so."""
    if alignment.query is None or (alignment.done < 0 and alignment.stored < 0):  # nothing of a first batch is anywhere yet
        return _begun_anew(alignment, checkpoint, store)
    if alignment.belongs_to != alignment.store and (alignment.belongs_to is not None or alignment.stored < 0):
        why = f"the checkpoint {checkpoint} belongs to another incident store than {store}, which was removed or replaced"
        lost = "the incidents that it led to are not in this one"
        return Ruling(Course.REFUSE, f"{why}: {lost}. Put that store back, or {_anew(alignment, checkpoint)}")
    if alignment.stored < alignment.done:
        why = f"the incident store {store} is older than the checkpoint {checkpoint}"
        lost = f"what batches {alignment.stored + 1} to {alignment.done} found is not in it"
        return Ruling(
            Course.REFUSE, f"{why}: {lost}. Put back the checkpoint of the same time, or {_anew(alignment, checkpoint)}"
        )
    if alignment.stored > alignment.planned:
        why = f"the checkpoint {checkpoint} is older than the incident store {store}"
        then = f"what batches {alignment.planned + 1} to {alignment.stored} read is read again"
        return Ruling(Course.READ_AGAIN, f"{why}: {then}, and what has ended since may be told as open once more")
    return Ruling(Course.GO_ON)


def _begun_anew(alignment: Alignment, checkpoint: str, store: str) -> Ruling:
    if alignment.written_at is None:
        return Ruling(Course.GO_ON)
    when = f"whose last batch was put in at {_moment(alignment.written_at)}"
    then = "sources are read from where `start` says, and what lies between is not read"
    return Ruling(Course.GO_ON, f"there is no checkpoint {checkpoint} for the incident store {store}, {when}: {then}")


def _anew(alignment: Alignment, checkpoint: str) -> str:
    """Return how to begin with an empty checkpoint and miss nothing."""
    aside = f"set the checkpoint aside (mv {checkpoint} {checkpoint}.old)"
    if alignment.written_at is None:
        return f"{aside} and start again: sources are read from where `start` says"
    start = f"`start: {_moment(alignment.written_at)}` (when this store was last written)"
    return f"{aside}, give the sources {start}, and start again"


def _moment(written_at: str) -> str:
    return f"{written_at[:19]}Z"
