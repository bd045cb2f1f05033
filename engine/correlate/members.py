"""Absence of a component's member: everything its sources print has stopped, and that is a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from engine.codec import dumps, loads
from engine.correlate.aggregate import MAX_SOURCES, EventTime
from engine.correlate.clocks import GAP
from engine.correlate.logic import Emissions, Entity, Facts, RuleNotEvaluated, known_labels, word_value
from engine.correlate.moments import Moments
from engine.correlate.runs import Runs
from engine.correlate.silence import WITNESSES, Pause, SilenceVerdict, judge
from engine.correlate.spans import Gap, Spans
from engine.correlate.versions import within
from engine.model.incidents import Alert, AlertKey, Evidence, Verdict, evidence_of
from engine.model.matches import Match
from engine.model.rules import Absence, Component, Rule

MISSED = 2.5  # times the cadence of a heartbeat that a member may be silent
_STEADY = 1.5  # beats closer than this times their cadence are consecutive; a run that long holds at least three
NEVER_HEARD = "declared, but nothing was ever read from it"

Beat = tuple[str, int]  # source, number of the component's heartbeat
# What (complaint, back, stop) and whose word it takes (`stop/controller`; without a name: anybody's), the member named or "",
# the source that said so: "" where a member is named and anybody may say it.
StatementKey = tuple[str, str, str]


class _MembersSnapshot(Struct, frozen=True):
    beats: list[tuple[Beat, list[tuple[Evidence, Evidence]]]] = field(default_factory=list)
    said: list[tuple[StatementKey, list[EventTime]]] = field(default_factory=list)
    told: list[tuple[Entity, str]] = field(default_factory=list)
    open: list[tuple[str, datetime]] = field(default_factory=list)


class _MembersDelta(Struct, frozen=True):
    """What has been said since, the runs of heartbeats that are others now, and the silences that last now."""

    beats: list[tuple[Beat, list[tuple[Evidence, Evidence]]]]
    said: list[tuple[StatementKey, list[EventTime]]]
    told: list[tuple[Entity, str]]
    open: list[tuple[str, datetime]]


class _Member(Struct, frozen=True):
    name: str
    sources: tuple[str, ...]
    spans: Spans


class _Armed(Struct, frozen=True):
    """A heartbeat that a member kept up to its silence: its cadence, and the last one printed."""

    every: timedelta
    last: Evidence


class MemberSilence:
    """Watches the members of one component (see Logic)."""

    follows_clocks = True
    full = False

    def __init__(self, rule: Rule, absence: Absence, component: Component, speakers: Mapping[str, Sequence[str]]) -> None:
        self.rule_id = rule.id
        self._rule, self._absence, self._component = rule, absence, component
        self._roles, self._speakers = _roles(absence), speakers
        self._heartbeat = f"component:{component.name}/heartbeat"
        self.listens = frozenset((self._heartbeat, *self._roles))
        self.dirty = False
        self._beats: dict[Beat, Runs[Evidence]] = {}
        self._said: dict[StatementKey, Moments] = {}
        self._is_kept = False  # whether its state is stored now and then
        self._new_beats: set[Beat] = set()  # since that was done
        self._new_said: dict[StatementKey, list[EventTime]] = {}
        self.told = Emissions()
        self._open: set[tuple[str, datetime]] = set()  # silences told of that last: member, since when

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a heartbeat, a complaint, its taking back or a planned stop; one without a stamp says nothing."""
        if not match.dated:
            return
        self.dirty = True
        if match.rule_id == self._heartbeat:
            self._beat(match)
            return
        for role in self._roles[match.rule_id]:
            named = self._named(match, role, facts)
            if named is None and role == "complaint":
                continue  # whoever prints it is not complained of
            speakers = () if role == "complaint" else self._speakers.get(match.rule_id, ())
            what = f"{role}/{','.join(speakers)}" if speakers else role
            source_id = match.source_id if speakers or not named else ""
            self._say((what, named or "", source_id), match.at, match.event_id)

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Leave the match: its event is matched again at the same time."""

    def on_progress(self, facts: Facts) -> None:
        """Everything is asked of the clocks in `findings`."""

    def next_deadline(self) -> None:
        """Return None: it follows the clocks."""

    def findings(self, facts: Facts) -> Iterator[Verdict | Evidence]:
        """Yield the verdicts of the members whose silences have changed, and the last heartbeats that prove them."""
        members = self._members(facts)
        judged = {self._entity(member.name, facts): self._alerts(member, members, facts) for member in members}
        judged |= {self._entity(name, facts): (alert,) for name, alert in self._never_heard(members, facts)}
        for entity in sorted({*judged, *self.told.entities()}):
            alerts = judged.get(entity, ())
            if self.told.is_news(entity, alerts, facts):
                self.dirty = True
                yield from self._proofs(alerts)
                yield Verdict((facts.scope, self.rule_id, entity), alerts)
        self._open = {
            (dict(entity).get(self._component.label, ""), alert.starts_at)
            for entity, alerts in judged.items()
            for alert in alerts
            if alert.ends_at is None
        }

    def unjudged(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return the members whose silence alone is no verdict."""
        complain = f"; {self.rule_id} needs others to complain" if self._absence.sooner else f", which {self.rule_id} needs"
        members = self._members(facts)
        if self._absence.sooner is None and len(members) <= WITNESSES:
            return []  # with so few it is never asked
        return [
            (f"{self._component.name} {member.name}", f"no steady heartbeat seen{complain}")
            for member in members
            if self._allowed(member, member.spans.last, facts) is None
        ]

    def snapshot(self) -> str:
        """Return everything as JSON."""
        self._is_stored()
        beats = [(beat, list(runs)) for beat, runs in self._beats.items()]
        said = [(said, moments.stamps()) for said, moments in self._said.items()]
        return dumps(_MembersSnapshot(beats, said, self.told.stored(), sorted(self._open)))

    def changes(self) -> str:
        """Return what has come since the state was stored as JSON."""
        beats = [(beat, list(self._beats[beat])) for beat in sorted(self._new_beats)]
        new = _MembersDelta(beats, list(self._new_said.items()), self.told.changes(), sorted(self._open))
        self._is_stored()
        return dumps(new)

    def restore(self, text: str, *since: str) -> None:
        """Continue from a snapshot and the changes after it."""
        state = loads(text, _MembersSnapshot)
        self._beats = {beat: Runs(self._steady(beat[1]), runs) for beat, runs in state.beats}
        self._said = {said: Moments(stamps) for said, stamps in state.said}
        self.told, self._open = Emissions(state.told), set(state.open)
        for changes in (loads(each, _MembersDelta) for each in since):
            self._beats |= {beat: Runs(self._steady(beat[1]), runs) for beat, runs in changes.beats}
            for said, stamps in changes.said:
                for at, event_id in stamps:
                    self._say(said, at, event_id)
            self.told.restore(changes.told)
            self._open = set(changes.open)
        self._is_stored()

    def _is_stored(self) -> None:
        self.dirty, self._is_kept = False, True
        self._new_beats, self._new_said = set(), {}

    def _say(self, said: StatementKey, at: datetime, event_id: str) -> None:
        self._said.setdefault(said, Moments()).add(at, event_id)
        if self._is_kept:
            self._new_said.setdefault(said, []).append((at, event_id))

    def _beat(self, match: Match) -> None:
        number = int(match.captures.get("beat", 0))
        proof = evidence_of(match)
        beat = (match.source_id, number)
        self._beats.setdefault(beat, Runs(self._steady(number))).add(proof)
        self._new_beats.add(beat)

    def _steady(self, number: int) -> timedelta:
        return timedelta(seconds=_STEADY * self._component.heartbeats[number].every_s)

    def _named(self, match: Match, role: str, facts: Facts) -> str | None:
        """Return the member that a line is about. A complaint names it; a stop or a return may be of the one that prints it."""
        label = self._component.label
        naming = _naming(self._absence, role).get(label)
        if naming is not None and naming in match.captures:
            return str(match.captures[naming])
        return None if role == "complaint" else word_value(match, label, label, facts.scope)

    def _members(self, facts: Facts) -> list[_Member]:
        bound = facts.bindings.members(self._component.name)
        members = (_Member(name, tuple(sources), facts.clocks.spans(sources)) for name, sources in bound.items())
        return [member for member in members if member.spans]

    def _entity(self, member: str, facts: Facts) -> Entity:
        known = {"cluster": facts.scope, self._component.label: member}
        return tuple((label, known[label]) for label in sorted(self._rule.entity) if label in known)

    def _alerts(self, member: _Member, members: Sequence[_Member], facts: Facts) -> tuple[Alert, ...]:
        others = [other.spans for other in members if other.name != member.name and not _ahead(other, facts)]
        peer_time = facts.clocks.peer_time(spans.last for spans in others)
        said = {role: self._stamps(role, member, facts) for role in ("complaint", "back", "stop")}
        read = all(facts.clocks.caught_up(source_id) for source_id in member.sources)
        found: list[Alert] = []
        for gap in member.spans.gaps():
            pause = self._pause(gap, member, others, peer_time, said, read, facts)
            silence = judge(pause, self._absence, self._rule.severity)
            if silence is not None:
                found.append(self._alert(member, gap, silence, said["complaint"], facts))
        return tuple(found)

    def _pause(
        self,
        gap: Gap,
        member: _Member,
        others: Sequence[Spans],
        peer_time: datetime | None,
        said: Mapping[str, Sequence[EventTime]],
        read: bool,
        facts: Facts,
    ) -> Pause:
        timespan = self._allowed(member, gap.since, facts)
        return Pause(
            gap=gap,
            timespan=timespan,
            complaints=[at for at, _ in said["complaint"]],
            taken_back=[at for at, _ in said["back"]],
            stops=[at for at, _ in said["stop"]],
            others=others,
            peer_time=peer_time,
            read=read,
            border=self._at_border(member, gap.since, timespan or GAP, facts),
            told=(member.name, gap.since) in self._open,
        )

    def _allowed(self, member: _Member, since: datetime, facts: Facts) -> timedelta | None:
        """Return how long `member` may be silent after `since`; None when nothing says so."""
        if self._absence.timespan_s > 0:
            return timedelta(seconds=self._absence.timespan_s)
        armed = self._armed(member.sources, since, facts)
        return None if armed is None else MISSED * armed.every

    def _armed(self, sources: Sequence[str], since: datetime, facts: Facts) -> _Armed | None:
        """Return the fastest heartbeat that was seen at least three times in a row until the silence began.

        Of each heartbeat only those count whose version is right; the last must not itself have been missed.
        """
        found: list[_Armed] = []
        for number, heartbeat in enumerate(self._component.heartbeats):
            every = timedelta(seconds=heartbeat.every_s)
            beats: Runs[Evidence] = Runs(self._steady(number))
            for source_id in sources:
                version = facts.bindings.version(source_id, self._component.name, since)
                if (source_id, number) in self._beats and (version is None or within(version, heartbeat.versions)):
                    beats.merge(self._beats[source_id, number])
            until_then = [(first, last) for first, last in beats if last.at <= since]
            for first, last in until_then[-1:]:
                if last.at - first.at >= self._steady(number) and since - last.at <= MISSED * every:
                    found.append(_Armed(every, last))
        return min(found, key=lambda armed: armed.every, default=None)

    def _at_border(self, member: _Member, since: datetime, timespan: timedelta, facts: Facts) -> bool:
        """Return whether the file that ends the member's log then was rotated away: what follows may be in another one."""
        cadence = timespan if self._absence.timespan_s > 0 else timespan / MISSED
        for source_id in member.sources:
            progress = facts.clocks.progress_of(source_id)
            if facts.clocks.newest(source_id) != since or progress is None or not progress.closed:
                continue
            if progress.covers_until is None or since + cadence >= progress.covers_until:
                return True
        return False

    def _stamps(self, role: str, member: _Member, facts: Facts) -> list[EventTime]:
        """Return the moments of one kind that are about `member`, by those who may speak for it, in order of time."""
        found: set[EventTime] = set()
        for (what, named, source_id), moments in self._said.items():
            kind, _, speakers = what.partition("/")
            if kind != role or (named or facts.bindings.member(source_id, self._component.name)) != member.name:
                continue
            if not speakers:
                found.update(moments.stamps())
            elif self._may_speak(source_id, speakers.split(","), member, facts):
                found.update(stamp for stamp in moments.stamps() if facts.clocks.vouches(source_id, stamp[0]))
        return sorted(found)

    def _may_speak(self, source_id: str, speakers: Sequence[str], member: _Member, facts: Facts) -> bool:
        """Return whether a source may speak for `member`: as itself, or as one of another component that answers for it."""
        if facts.bindings.may_speak(source_id, self._component.name, member.name):
            return True
        others = (name for name in speakers if name != self._component.name)
        return any(facts.bindings.may_speak(source_id, name) for name in others)

    def _alert(
        self, member: _Member, gap: Gap, silence: SilenceVerdict, complaints: Sequence[EventTime], facts: Facts
    ) -> Alert:
        armed = self._armed(member.sources, gap.since, facts)
        proofs = [armed.last.event_id] if armed else []
        if silence.complained is not None:
            proofs += [event_id for at, event_id in complaints if at >= silence.complained][:3]
        entity = self._entity(member.name, facts)
        return Alert(
            key=(facts.scope, self.rule_id, entity),
            status="firing" if silence.until is None else "resolved",
            severity=silence.severity,
            starts_at=gap.since,
            last_seen=silence.until or silence.certain,
            ends_at=silence.until,
            count=1,
            dated=True,
            labels=known_labels(entity),
            events=tuple(proofs[:1] if armed else ()),
            evidence=tuple(proofs),
            why=silence.why,
            sources=member.sources[:MAX_SOURCES],
        )

    def _never_heard(self, members: Sequence[_Member], facts: Facts) -> Iterator[tuple[str, Alert]]:
        """Yield an alert for each declared member that nothing was read from, though enough others were for long enough."""
        missing = _declared(self._component, facts) - {member.name for member in members}
        if self._absence.after is not None or not missing or len(members) < WITNESSES:
            return
        since = min(next(iter(member.spans))[0] for member in members)
        deadline = since + self._patience()
        going_on = [member for member in members if member.spans.last > deadline]
        if len(going_on) < WITNESSES or not all(facts.clocks.caught_up(source_id) for source_id in facts.clocks.sources()):
            return
        for name in sorted(missing):
            entity = self._entity(name, facts)
            key: AlertKey = (facts.scope, self.rule_id, entity)
            labels = known_labels(entity)
            yield name, Alert(key, "firing", self._rule.severity, since, deadline, None, 1, True, labels, why=NEVER_HEARD)

    def _patience(self) -> timedelta:
        cadences = [heartbeat.every_s for heartbeat in self._component.heartbeats]
        return timedelta(seconds=self._absence.timespan_s or MISSED * min(cadences, default=600.0))

    def _proofs(self, alerts: Sequence[Alert]) -> Iterator[Evidence]:
        wanted = {event_id for alert in alerts for event_id in alert.evidence}
        for runs in self._beats.values():
            yield from (end for ends in runs for end in dict.fromkeys(ends) if end.event_id in wanted)


def _ahead(member: _Member, facts: Facts) -> bool:
    return any(facts.clocks.ahead(source_id) for source_id in member.sources)


def _roles(absence: Absence) -> dict[str, list[str]]:
    """Return what the matches of each rule say: complaint, back or stop."""
    sooner, stop = absence.sooner, absence.stop
    said = [("complaint", sooner.rules), ("back", sooner.back)] if sooner else []
    said += [("stop", stop.rules)] if stop else []
    roles: dict[str, list[str]] = {}
    for role, rules in said:
        for rule_id in rules:
            roles.setdefault(rule_id, []).append(role)
    return roles


def _naming(absence: Absence, role: str) -> Mapping[str, str]:
    if role == "stop":
        return absence.stop.naming if absence.stop else {}
    return absence.sooner.naming if absence.sooner else {}


def _declared(component: Component, facts: Facts) -> set[str]:
    """Return the members that the configuration or the caller expects: `brokers`, of all scopes or of this one."""
    if component.name != "broker":
        return set()
    listed = facts.context.get(f"{facts.scope}.brokers") or facts.context.get("brokers", "")
    return {member.strip() for member in listed.split(",") if member.strip()}
