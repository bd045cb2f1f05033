"""The timeline of an incident: the differences between its revisions, the attempts to notify receivers, and what people did.

Times of revisions are event times, from the logs; times of attempts and acts are clocks of machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from operator import itemgetter

from msgspec import Struct

from engine.acting import lapses, sentence
from engine.model.acts import Act, ActKind
from engine.model.incidents import Incident
from engine.model.notifications import Attempt, DeliveryState
from engine.model.words import marked, worded
from engine.picture import Deed
from engine.picture.description import PERSON, STATE, TOLD

BY_LOGS, BY_NOTIFIER = marked("logs", "notifier")
WAYS = marked("page", "slack", "command")  # by which people act
REASONS = marked(  # why a receiver is told of an incident (see Reason)
    "opened", "updated", "escalated", "resolved", "reopened", "root changed", "merged", "repeated", "backfill", "digest", "test"
)
OUTCOMES = marked("queued", "sending", "delivered", "retry later", "rejected", "muted", "backfill", "folded")  # DeliveryState


class Change(Struct, frozen=True):
    """An entry of the timeline: one sentence, from the logs, from the notifier, or else by the person `by`, who came `via` a
    page, Slack or a command. `at` is None when the lines have no time; `revision` is None for what people did. `turns`: it
    changes the state or the severity of the incident."""

    at: datetime | None
    revision: int | None
    sentence: str
    by: str = BY_LOGS
    turns: bool = False
    via: str = ""


def timeline(revisions: Sequence[Incident], attempts: Sequence[Attempt] = (), acts: Sequence[Act] = ()) -> tuple[Change, ...]:
    """Return the timeline of `revisions` (at least one, in order), `attempts` and `acts` (each oldest first).

    A revision with nothing new but a count is summed up with the next one. What the notifier and people did comes before the
    first change that is later.
    """
    changes = list(_changes(revisions))
    done = [_lapse_change(*lapse) for lapse in lapses(acts, revisions)]
    done += [*map(_attempt_change, attempts), *map(_act_change, acts)]
    changes += [change for change in done if change.at is None]
    for at, change in sorted(((each.at, each) for each in done if each.at is not None), key=itemgetter(0), reverse=True):
        positions = (n for n, other in enumerate(changes) if other.at is not None and other.at > at)
        changes.insert(next(positions, len(changes)), change)
    return tuple(changes)


def deeds(changes: Sequence[Change]) -> tuple[Deed, ...]:
    """Return what the picture shows of the changes: notifications, what people did, and turns of the state and the severity."""
    return tuple(
        Deed(change.at, PERSON, f"{change.by}: {change.sentence}")
        if change.via
        else Deed(change.at, TOLD if change.by == BY_NOTIFIER else STATE, change.sentence)
        for change in changes
        if change.at is not None and (change.turns or change.via or change.by != BY_LOGS)
    )


def _act_change(act: Act) -> Change:
    return Change(
        act.at, None, worded("note: {text}", text=act.text) if act.kind is ActKind.NOTE else sentence(act), act.by, via=act.via
    )


def _lapse_change(act: Act, revision: Incident) -> Change:
    if act.kind is ActKind.ACKNOWLEDGE:
        since = worded("open again: it has gone on since {person} acknowledged it", person=act.by)
    else:
        since = worded("open again: it has gone on since {person} resolved it", person=act.by)
    return Change(_time_of(revision), revision.revision, since, turns=True)


def _attempt_change(attempt: Attempt) -> Change:
    reason = attempt.reason.value.replace("_", " ")
    if attempt.outcome is DeliveryState.DELIVERED:
        told = worded("{person} was told: {reason}", person=attempt.receiver, reason=reason)
        return Change(attempt.at, attempt.revision, told, BY_NOTIFIER)
    values = {"person": attempt.receiver, "reason": reason, "outcome": attempt.outcome.value.replace("_", " ")}
    if attempt.why:
        untold = worded("{person} was not told ({reason}): {outcome}, {text}", **values, text=attempt.why)
    else:
        untold = worded("{person} was not told ({reason}): {outcome}", **values)
    return Change(attempt.at, attempt.revision, untold, BY_NOTIFIER)


def _changes(revisions: Sequence[Incident]) -> Iterator[Change]:
    first = revisions[0]
    notable = [first]
    for revision in revisions[1:]:
        if next(_notable_differences(notable[-1], revision), None):
            notable.append(revision)
    if notable[-1] is not revisions[-1]:
        notable.append(revisions[-1])
    yield Change(first.opened_at or first.first_seen, first.revision, _opening(first))
    yield from (
        Change(_time_of(now), now.revision, sentence, turns=sentence in turns)
        for before, now in pairwise(notable)
        for turns in (set(_turns(before, now)),)
        for sentence in _differences(before, now)
    )


def _opening(first: Incident) -> str:
    if first.pending:
        return worded("seen with severity {severity}, not yet confirmed", severity=first.severity)
    return worded("opened with severity {severity}", severity=first.severity)


def _differences(before: Incident, now: Incident) -> Iterator[str]:
    yield from _notable_differences(before, now)
    if now.count != before.count:
        yield worded("counted {number:,} times, {before:,} before", number=now.count, before=before.count)


def _notable_differences(before: Incident, now: Incident) -> Iterator[str]:
    """Yield a sentence for each difference other than the count."""
    if before.pending and not now.pending:
        yield worded("confirmed and opened with severity {severity}", severity=now.severity)
    if now.rule != before.rule:
        yield worded("the root cause is {title} [{rule}], it was [{id}]", title=now.title, rule=now.rule, id=before.rule)
    if now.stage != before.stage and now.stage:
        yield worded("the next stage of the trouble is reached [{rule}]", rule=now.stage)
    yield from _turns(before, now)
    explained_before = {(symptom.rule, tuple(symptom.labels.items())) for symptom in before.symptoms}
    for symptom in now.symptoms:
        if (symptom.rule, tuple(symptom.labels.items())) not in explained_before:
            yield worded("explains {title} [{rule}]", title=symptom.title or symptom.rule, rule=symptom.rule)


def _turns(before: Incident, now: Incident) -> Iterator[str]:
    if now.severity != before.severity:
        yield worded("severity {severity}, {earlier} before", severity=now.severity, earlier=before.severity)
    if now.status != before.status:
        yield _status(now)


def _status(now: Incident) -> str:
    if now.status == "merged":
        return worded("merged into {id}", id=now.merged_into)
    word = {"open": worded("open again"), "retracted": worded("taken back")}.get(now.status, now.status)
    return worded("{change} ({why})", change=word, why=now.why) if now.why else word


def _time_of(incident: Incident) -> datetime | None:
    return incident.resolved_at if incident.status == "resolved" else incident.last_seen
