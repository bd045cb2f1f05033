"""Acts of people on incidents: whether one has an effect, what all of them result in, and how an incident is shown with them.
Pure.

The logs and people both have a say in the state of an incident. What a person said holds for what was known then. A resolved
incident with newer evidence is open again; an acknowledged one stays so until its trouble has ended and begins again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from msgspec.structs import replace

from engine.model.acts import (
    MOST_NAME,
    MOST_TEXT,
    NO_HANDLING,
    Act,
    ActDecision,
    ActKind,
    ActOutcome,
    Handling,
    SilenceScope,
)
from engine.model.incidents import AlertCourse, Incident
from engine.model.phrases import moment
from engine.model.routes import LabelMatcher, Silence
from engine.model.words import worded

IN_FLIGHT = timedelta(minutes=2)  # lines that were written before an act may arrive that much later than those before them
_SILENCE_ID = 8  # characters
_LOGS_DECIDE = frozenset(("merged", "retracted"))
_ON_RETRACTED = frozenset((ActKind.NOTE, ActKind.USEFUL, ActKind.NOT_USEFUL))
_STATES = {ActKind.ACKNOWLEDGE: "acknowledged", ActKind.RESOLVE: "resolved", ActKind.REOPEN: "open"}
_DONE = {
    ActKind.ACKNOWLEDGE: worded("acknowledged"),
    ActKind.RESOLVE: worded("resolved"),
    ActKind.REOPEN: worded("reopened"),
    ActKind.USEFUL: worded("called useful"),
    ActKind.NOT_USEFUL: worded("called not useful"),
}
_SILENCED = {
    SilenceScope.INCIDENT: worded("silenced"),
    SilenceScope.RULE: worded("silenced with its rule"),
    SilenceScope.ENTITY: worded("silenced with its entity"),
}
_UNNAMED = frozenset(("cluster",))  # labels of an entity that do not tell it from the rest of its cluster


def known_until(seen: datetime | None, at: datetime) -> datetime | None:
    """Return the event time up to which evidence is no news to a person who acts at `at`; None when the lines have no times.

    Args:
        seen: the last event of the incident that was stored at `at`. Later events of the next IN_FLIGHT were on their way if
            they happened before `at`. An act never covers more than that, even if a source's clock is slow.
    """
    return None if seen is None else max(seen, min(at, seen + IN_FLIGHT))


def noted(act: Act, incident: Incident) -> Act:
    """Return `act` with what the logs have shown of `incident`, which is as the job stored it, and the id of its silence."""
    silence = hashlib.sha256(act.key.encode()).hexdigest()[:_SILENCE_ID] if act.kind is ActKind.SILENCE else act.silence
    seen = known_until(incident.last_seen, act.at)
    return replace(act, incident=incident.id, until_seen=seen, count=incident.count, status=incident.status, silence=silence)


def decide_act(act: Act, incident: Incident) -> ActDecision:
    """Decide whether `act` has an effect on `incident`, which is as shown (see as_shown)."""
    problem = _problem(act, incident)
    if problem:
        return ActDecision(ActOutcome.REFUSED, problem)
    repetition = _repetition(act, incident)
    if repetition:
        return ActDecision(ActOutcome.UNCHANGED, repetition)
    return ActDecision(ActOutcome.DONE, sentence(act))


def handling_of(acts: Iterable[Act]) -> Handling:
    """Return the result of `acts`, which all had an effect on one incident, in their order."""
    handling = NO_HANDLING
    for act in acts:
        handling = replace(_after(handling, act), acts=handling.acts + 1)
    return handling


def as_shown(incident: Incident, handling: Handling | None) -> Incident:
    """Return an incident of the job as it is shown after what people did.

    Its `handling` is without what newer evidence has ended, and None when nobody did anything.
    """
    if handling is None or handling.acts == 0:
        return incident
    in_force = handling if _is_in_force(incident, handling) else _ended(handling)
    if incident.status in _LOGS_DECIDE or incident.pending or in_force.state in ("", incident.status):
        return replace(incident, handling=in_force)
    if in_force.state == "acknowledged" and incident.status == "resolved":
        return replace(incident, handling=in_force)
    by, reason = in_force.by, in_force.why
    why = worded("by {person}: {text}", person=by, text=reason) if reason else worded("by {person}", person=by)
    resolved_at = in_force.at if in_force.state == "resolved" else None
    return replace(incident, status=in_force.state, why=why, resolved_at=resolved_at, handling=in_force)


def began(incident: Incident) -> datetime | None:
    """Return when the last firing of the incident's root began; None when its lines have no times."""
    return max((_last_begin(course) for course in incident.course if course.role == "root"), default=incident.first_seen)


def lapses(acts: Sequence[Act], revisions: Iterable[Incident]) -> list[tuple[Act, Incident]]:
    """Return the acts whose state newer evidence has ended while they were the last to set one, each with the first of
    `revisions` (as the job stored them, in order) that shows it.

    Args:
        acts: all acts on the incident, in their order.
    """
    every, setting = list(revisions), [act for act in acts if act.kind in _STATES]
    ended = []
    for act, following in pairwise([*setting, None]):
        if act is None or act.kind is ActKind.REOPEN:
            continue
        handling = _after(NO_HANDLING, act)
        newer = (revision for revision in every if revision.status == "open" and not _is_in_force(revision, handling))
        revision = next(newer, None)
        if revision is not None and (following is None or _knew(following, revision)):
            ended.append((act, revision))
    return ended


def silence_of(act: Act, incident: Incident) -> Silence | None:
    """Return the silence that an act adds; None when what it names cannot be told from its whole cluster, or it is no silence.

    Its id follows from the key of the act.
    """
    matchers = _matchers(act.scope, incident)
    if act.kind is not ActKind.SILENCE or act.until is None or not matchers:
        return None
    comment = act.text or f"{act.scope.value} of {incident.id}"
    return Silence(act.silence, matchers, act.at, act.until, comment, act.by)


def sentence(act: Act) -> str:
    """Return what was done, in words that follow the name of the person: `acknowledged`."""
    if act.kind is ActKind.NOTE:
        return act.text
    return worded("{what}: {text}", what=_what(act), text=act.text) if act.text else _what(act)


def _what(act: Act) -> str:
    if act.kind is ActKind.ASSIGN:
        return worded("assigned to {person}", person=act.assignee) if act.assignee else worded("taken from whoever had it")
    if act.kind is ActKind.SILENCE:
        what = _SILENCED[act.scope]
        return worded("{what} until {time}", what=what, time=moment(act.until)) if act.until else what
    if act.kind is ActKind.UNSILENCE:
        return worded("ended the silence {id}", id=act.silence)
    return _DONE[act.kind]


def _problem(act: Act, incident: Incident) -> str:
    """Return why an act cannot be done; empty when it can."""
    if not act.by.strip():
        return worded("who does it is not known")
    if max(map(len, (act.by, act.account, act.assignee))) > MOST_NAME:
        return worded("a name has more than {number} characters", number=MOST_NAME)
    if len(act.text) > MOST_TEXT:
        return worded("the text has more than {number:,} characters", number=MOST_TEXT)
    if incident.status == "retracted" and act.kind not in _ON_RETRACTED:
        return worded("it was taken back: later lines contradict it")
    if incident.pending and act.kind in (ActKind.RESOLVE, ActKind.REOPEN):
        return worded("it is not confirmed yet, and nobody was told of it")
    if act.kind is ActKind.NOTE and not act.text.strip():
        return worded("the note is empty")
    if act.kind is ActKind.ACKNOWLEDGE and incident.status == "resolved":
        if not incident.why:
            return worded("it is resolved; reopen it first")
        return worded("it is resolved ({why}); reopen it first", why=incident.why)
    return _problem_of_silence(act, incident) if act.kind is ActKind.SILENCE else ""


def _problem_of_silence(act: Act, incident: Incident) -> str:
    if act.until is None or act.until <= act.at:
        return worded("a silence ends later than it begins")
    if not _matchers(act.scope, incident):
        return worded("its entity is its whole cluster; silence the incident or its rule")
    return ""


def _repetition(act: Act, incident: Incident) -> str:
    """Return why an act changes nothing; empty when it changes something."""
    handling, state = incident.handling or NO_HANDLING, _STATES.get(act.kind)
    if state is not None and incident.status == state:
        if not incident.why or state == "open":
            return worded("it is {status} already", status=state)
        return worded("it is {status} already ({why})", status=state, why=incident.why)
    if act.kind is ActKind.ASSIGN and act.assignee == handling.owner:
        return worded("{person} has it already", person=act.assignee) if act.assignee else worded("nobody has it")
    is_useful = {ActKind.USEFUL: True, ActKind.NOT_USEFUL: False}.get(act.kind)
    if is_useful is not None and handling.useful is is_useful and not act.text:
        return worded("it was called that already")
    return ""


def _after(handling: Handling, act: Act) -> Handling:
    """Return the handling after one more act; its number of acts is not changed."""
    if act.kind in _STATES:
        owner, is_assigned = handling.owner, handling.is_assigned
        if act.kind is ActKind.ACKNOWLEDGE:
            owner, is_assigned = act.by, False
        elif act.kind is ActKind.REOPEN and not is_assigned:
            owner = ""
        is_left_to_logs = act.kind is ActKind.REOPEN and act.status != "resolved"  # the logs decide when it is over
        return Handling(
            state="" if is_left_to_logs else _STATES[act.kind],
            by=act.by,
            at=act.at,
            why=act.text,
            until_seen=act.until_seen,
            count=act.count,
            owner=owner,
            is_assigned=is_assigned,
            useful=handling.useful,
            acts=handling.acts,
        )
    if act.kind is ActKind.ASSIGN:
        return replace(handling, owner=act.assignee, is_assigned=bool(act.assignee))
    if act.kind in (ActKind.USEFUL, ActKind.NOT_USEFUL):
        return replace(handling, useful=act.kind is ActKind.USEFUL)
    return handling


def _is_in_force(incident: Incident, handling: Handling) -> bool:
    """Return whether nothing has happened since the state of `handling` was set that ends it."""
    newest = began(incident) if handling.state == "acknowledged" else incident.last_seen
    if newest is None or handling.until_seen is None:
        return handling.state == "acknowledged" or incident.count <= handling.count
    return newest <= handling.until_seen


def _knew(act: Act, revision: Incident) -> bool:
    """Return whether what `revision` shows was known when `act` was done."""
    if revision.last_seen is None or act.until_seen is None:
        return revision.count <= act.count
    return revision.last_seen <= act.until_seen


def _ended(handling: Handling) -> Handling:
    """Return `handling` without its state, and without the owner that its acknowledgement made."""
    owner = handling.owner if handling.is_assigned else ""
    return replace(handling, state="", by="", at=None, why="", owner=owner)


def _last_begin(course: AlertCourse) -> datetime:
    return course.first if course.alerts == 1 else course.last


def _matchers(scope: SilenceScope, incident: Incident) -> tuple[LabelMatcher, ...]:
    """Return the matchers of a silence; none when an entity is its whole cluster."""
    if scope is SilenceScope.INCIDENT:
        return (LabelMatcher("incident", "=", incident.id),)
    cluster = [LabelMatcher("cluster", "=", incident.labels["cluster"])] if "cluster" in incident.labels else []
    if scope is SilenceScope.RULE:
        return (LabelMatcher("rule", "=", incident.rule), *cluster)
    names = [name for name, _ in incident.key[2] if name not in _UNNAMED and incident.labels.get(name)]
    return (*(LabelMatcher(name, "=", incident.labels[name]) for name in names), *cluster) if names else ()
