"""What happened to an incident: its revisions, and who was told of it.

Times of revisions are event times: what the logs say, not when it was noticed; those of messages are the notifier's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from msgspec import Struct

from engine.model.incidents import Incident
from engine.model.notifications import Attempt, DeliveryState

BY_LOGS, BY_NOTIFIER = "logs", "notifier"


class Change(Struct, frozen=True):
    """Something that happened, in one sentence, read in the logs or done by the notifier; `at` is None when the lines bear no
    time."""

    at: datetime | None
    revision: int
    sentence: str
    by: str = BY_LOGS


def timeline(revisions: Sequence[Incident], attempts: Sequence[Attempt] = ()) -> tuple[Change, ...]:
    """Return the changes of `revisions` (at least one, first one first) and the `attempts` to tell of them, oldest first.

    Revisions that only count more are told with the next; an attempt stands before the first change that is later.
    """
    said = list(_changes(revisions))
    for attempt in reversed(attempts):
        later = (n for n, change in enumerate(said) if change.at is not None and change.at > attempt.at)
        said.insert(next(later, len(said)), _told(attempt))
    return tuple(said)


def _told(attempt: Attempt) -> Change:
    what = attempt.reason.value.replace("_", " ")
    if attempt.outcome is DeliveryState.DELIVERED:
        return Change(attempt.at, attempt.revision, f"{attempt.receiver} was told: {what}", BY_NOTIFIER)
    how = ", ".join(part for part in (attempt.outcome.value.replace("_", " "), attempt.why) if part)
    return Change(attempt.at, attempt.revision, f"{attempt.receiver} was not told ({what}): {how}", BY_NOTIFIER)


def _changes(revisions: Sequence[Incident]) -> Iterator[Change]:
    first = revisions[0]
    chosen = [first]
    for revision in revisions[1:]:
        if next(_news(chosen[-1], revision), None):
            chosen.append(revision)
    if chosen[-1] is not revisions[-1]:
        chosen.append(revisions[-1])
    yield Change(first.opened_at or first.first_seen, first.revision, _opening(first))
    yield from (Change(_at(now), now.revision, said) for before, now in pairwise(chosen) for said in _sentences(before, now))


def _opening(first: Incident) -> str:
    return (
        f"seen with severity {first.severity}, not yet confirmed" if first.pending else f"opened with severity {first.severity}"
    )


def _sentences(before: Incident, now: Incident) -> Iterator[str]:
    yield from _news(before, now)
    if now.count != before.count:
        yield f"counted {now.count:,} times, {before.count:,} before"


def _news(before: Incident, now: Incident) -> Iterator[str]:
    """Yield what is worth a line of its own."""
    if before.pending and not now.pending:
        yield f"confirmed and opened with severity {now.severity}"
    if now.rule != before.rule:
        yield f"the root cause is {now.title} [{now.rule}], it was [{before.rule}]"
    if now.severity != before.severity:
        yield f"severity {now.severity}, {before.severity} before"
    if now.stage != before.stage and now.stage:
        yield f"the next stage of the trouble is reached [{now.stage}]"
    if now.status != before.status:
        yield _status(now)
    known = {(symptom.rule, tuple(symptom.labels.items())) for symptom in before.symptoms}
    for symptom in now.symptoms:
        if (symptom.rule, tuple(symptom.labels.items())) not in known:
            yield f"explains {symptom.title or symptom.rule} [{symptom.rule}]"


def _status(now: Incident) -> str:
    if now.status == "merged":
        return f"merged into {now.merged_into}"
    word = {"open": "open again", "retracted": "taken back"}.get(now.status, now.status)
    return f"{word} ({now.why})" if now.why else word


def _at(incident: Incident) -> datetime | None:
    return incident.resolved_at if incident.status == "resolved" else incident.last_seen
