"""Absence of a component's member: its sources have stopped printing, and that is a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.aggregate import MAX_SOURCES, EventTime
from engine.correlate.clocks import GAP
from engine.correlate.entities import Entity, entity_labels
from engine.correlate.facts import Facts, RuleNotEvaluated
from engine.correlate.heartbeats import MISSED, Heartbeats
from engine.correlate.keyed_state import KeyedState, StateCell
from engine.correlate.silence import WITNESSES, Pause, SilenceVerdict, judge
from engine.correlate.spans import Gap, Spans
from engine.correlate.statements import Statements
from engine.correlate.tables import ValueCell
from engine.model.incidents import Alert, AlertKey, Evidence, HeartbeatRun, Verdict
from engine.model.matches import Match
from engine.model.rules import UNCOLLECTED, Absence, Component, Rule
from engine.model.words import worded

RHYTHM_BEFORE = timedelta(hours=1)
MOST_RHYTHMS = 12  # members
BROKER = "broker"
SEEN_TO_RUN = "low"  # the severity when only the log of a broker is missing
NEVER_HEARD = worded("declared, but nothing was ever read from it")
NOT_COLLECTED = worded("the cluster has it, but nothing was ever read from it")
TAKEN_OUT = worded("removed from the cluster")

OpenSilence = tuple[str, datetime]  # member, since when


class _Member(Struct, frozen=True):
    name: str
    sources: tuple[str, ...]
    spans: Spans


class _PeerClocks(Struct, frozen=True):
    """The other members whose clocks can be trusted: when each was active, and the time that they agree has come."""

    spans: Sequence[Spans]
    time: datetime | None


class MemberSilence(KeyedState):
    """Alerts on silences of the members of one component."""

    follows_clocks = True

    def __init__(self, rule: Rule, absence: Absence, component: Component, speakers: Mapping[str, Sequence[str]]) -> None:
        self._absence, self._component = absence, component
        self._heartbeats = Heartbeats(component)
        self._statements = Statements(absence, component, speakers)
        super().__init__(rule, (self._heartbeats.rule_id, *self._statements.rule_ids))
        self._open: ValueCell[list[OpenSilence]] = ValueCell([], list[OpenSilence])  # silences that are firing, sorted

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a heartbeat, a complaint, its withdrawal or a planned stop; one without a time stamp is ignored."""
        if not match.dated:
            return
        if match.rule_id == self._heartbeats.rule_id:
            self._heartbeats.add(match)
        else:
            self._statements.add(match, facts)

    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of all members, by entity."""
        members = self._members(facts)
        judged = {self._entity(member.name, facts): self._alerts(member, members, facts) for member in members}
        judged |= {self._entity(name, facts): (alert,) for name, alert in self._never_heard(members, facts)}
        for entity in sorted({*judged, *self.emissions.entities()}):
            yield Verdict((facts.scope, self.rule_id, entity), judged.get(entity, ()))
        self._open.value = sorted(
            {
                (dict(entity).get(self._component.label, ""), alert.starts_at)
                for entity, alerts in judged.items()
                for alert in alerts
                if alert.ends_at is None
            }
        )

    def evidence(self, alerts: Sequence[Alert]) -> Iterator[Evidence]:
        """Yield the last heartbeats before the silences."""
        yield from self._heartbeats.evidence(alerts)

    def snapshot(self) -> Mapping[str, StateCell]:
        """Return heartbeats, statements, and the silences that are firing."""
        return {"heartbeats": self._heartbeats.runs, "statements": self._statements.moments, "open": self._open}

    def not_evaluated(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return the members that no steady heartbeat arms: their silence alone is no verdict."""
        complain = f"; {self.rule_id} needs others to complain" if self._absence.sooner else f", which {self.rule_id} needs"
        members = [member for member in self._members(facts) if not self._is_stated(member.name, facts)]
        if self._absence.sooner is None and len(members) <= WITNESSES:
            return []  # with so few it is never judged
        return [
            (f"{self._component.name} {member.name}", f"no steady heartbeat seen{complain}")
            for member in members
            if self._allowed(member, member.spans.last, facts) is None
        ]

    def _members(self, facts: Facts) -> list[_Member]:
        bound = facts.bindings.members(self._component.name)
        members = (_Member(name, tuple(sources), facts.clocks.spans(sources)) for name, sources in bound.items())
        return [member for member in members if member.spans]

    def _entity(self, member: str, facts: Facts) -> Entity:
        values = {"cluster": facts.scope, self._component.label: member}
        return tuple((label, values[label]) for label in sorted(self.rule.entity) if label in values)

    def _alerts(self, member: _Member, members: Sequence[_Member], facts: Facts) -> tuple[Alert, ...]:
        others = [other.spans for other in members if other.name != member.name and not _is_ahead(other, facts)]
        peers = _PeerClocks(others, facts.clocks.peer_time(spans.last for spans in others))
        statements = {role: self._statements.of(role, member.name, facts) for role in ("complaint", "back", "stop")}
        alerts: list[Alert] = []
        for gap in member.spans.gaps():
            silence = judge(self._pause(gap, member, peers, statements, facts), self._absence, self.rule.severity)
            if silence is not None:
                alert = self._alert(member, gap, silence, statements["complaint"], facts)
                if (watched := _while_member(alert, self._removed_at(member.name, facts))) is not None:
                    alerts.append(replace(watched, heartbeats=self._rhythms(members, watched)))
        return tuple(alerts)

    def _pause(
        self, gap: Gap, member: _Member, peers: _PeerClocks, statements: Mapping[str, Sequence[EventTime]], facts: Facts
    ) -> Pause:
        timespan = self._allowed(member, gap.since, facts)
        return Pause(
            gap=gap,
            timespan=timespan,
            complaints=[at for at, _ in statements["complaint"]],
            taken_back=[at for at, _ in statements["back"]],
            stops=[at for at, _ in statements["stop"]],
            others=peers.spans,
            peer_time=peers.time,
            read=all(facts.clocks.caught_up(source_id) for source_id in member.sources),
            border=self._is_rotated(member, gap.since, timespan or GAP, facts),
            firing=(member.name, gap.since) in self._open.value,
        )

    def _allowed(self, member: _Member, since: datetime, facts: Facts) -> timedelta | None:
        """Return how long `member` may be silent after `since`; None when there is no bound."""
        if self._absence.timespan_s > 0:
            return timedelta(seconds=self._absence.timespan_s)
        armed = self._heartbeats.armed(member.sources, since, facts)
        return None if armed is None else MISSED * armed.every

    def _is_rotated(self, member: _Member, since: datetime, timespan: timedelta, facts: Facts) -> bool:
        """Return whether the last file of the member's log at that time was rotated: later lines may be in another file."""
        cadence = timespan if self._absence.timespan_s > 0 else timespan / MISSED
        for source_id in member.sources:
            progress = facts.clocks.progress_of(source_id)
            if facts.clocks.newest(source_id) != since or progress is None or not progress.closed:
                continue
            if progress.covers_until is None or since + cadence >= progress.covers_until:
                return True
        return False

    def _alert(
        self, member: _Member, gap: Gap, silence: SilenceVerdict, complaints: Sequence[EventTime], facts: Facts
    ) -> Alert:
        armed = self._heartbeats.armed(member.sources, gap.since, facts)
        event_ids = [armed.last.event_id] if armed else []
        if silence.complained is not None:
            event_ids += [event_id for at, event_id in complaints if at >= silence.complained][:3]
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
            labels=entity_labels(entity),
            events=tuple(event_ids[:1] if armed else ()),
            evidence=tuple(event_ids),
            why=silence.why,
            sources=member.sources[:MAX_SOURCES],
        )

    def _rhythms(self, members: Sequence[_Member], alert: Alert) -> tuple[HeartbeatRun, ...]:
        """Return the heartbeats of all members from RHYTHM_BEFORE the silence until it was certain or over, its own first."""
        begin, end = alert.starts_at - RHYTHM_BEFORE, alert.last_seen
        silent = alert.labels.get(self._component.label)
        shown = sorted(members, key=lambda member: (member.name != silent, member.name))[:MOST_RHYTHMS]
        runs = (
            HeartbeatRun({self._component.label: member.name}, every.total_seconds(), first, last)
            for member in shown
            for every, first, last in self._heartbeats.runs_of(member.sources, begin, end)
        )
        distinct: list[HeartbeatRun] = []
        for run in runs:
            if run not in distinct:  # a line may be a heartbeat of two kinds
                distinct.append(run)
        return tuple(distinct)

    def _never_heard(self, members: Sequence[_Member], facts: Facts) -> Iterator[tuple[str, Alert]]:
        """Yield an alert for each expected member that nothing was read from while enough others were active for long."""
        read = {member.name for member in members}
        missing = [expected for expected in _expected(self._component, facts) if expected.name not in read]
        if self._absence.after is not None or not missing or len(members) < WITNESSES:
            return
        begin = min(next(iter(member.spans))[0] for member in members)
        patience = timedelta(seconds=self._absence.timespan_s or self._heartbeats.patience_s())
        if not all(facts.clocks.caught_up(source_id) for source_id in facts.clocks.sources()):
            return
        for expected in missing:
            since = begin if expected.since is None else max(begin, expected.since)
            deadline = since + patience
            if sum(member.spans.last > deadline for member in members) < WITNESSES:
                continue
            entity = self._entity(expected.name, facts)
            key: AlertKey = (facts.scope, self.rule_id, entity)
            labels = entity_labels(entity)
            alert = Alert(key, "firing", self.rule.severity, since, deadline, None, 1, True, labels, why=expected.why)
            yield expected.name, _only_unread(alert) if expected.is_there else alert

    def _removed_at(self, member: str, facts: Facts) -> datetime | None:
        return facts.bindings.stated.removed_at(member) if self._component.name == BROKER else None

    def _is_stated(self, member: str, facts: Facts) -> bool:
        """Return whether servers that are asked tell of `member`: then its silence is not all there is to judge it by."""
        return self._component.name == BROKER and member in facts.bindings.stated.brokers


def _is_ahead(member: _Member, facts: Facts) -> bool:
    return any(facts.clocks.ahead(source_id) for source_id in member.sources)


class _ExpectedMember(Struct, frozen=True):
    """A member that is expected to print: why, since when (None: always), and whether it runs although it is silent."""

    name: str
    why: str
    since: datetime | None = None
    is_there: bool = False


def _expected(component: Component, facts: Facts) -> list[_ExpectedMember]:
    """Return the members that the configuration or the caller expects: `brokers`, of this scope or of all; if there are none,
    those that the cluster has, when it is asked."""
    if component.name != BROKER:
        return []
    listed = facts.context.get(f"{facts.scope}.brokers") or facts.context.get("brokers", "")
    declared = sorted({member.strip() for member in listed.split(",") if member.strip()})
    if declared:
        return [_ExpectedMember(name, NEVER_HEARD) for name in declared]
    return [
        _ExpectedMember(name, NOT_COLLECTED, since, not is_away)
        for name, (since, is_away) in facts.bindings.stated.present().items()
    ]


def _only_unread(alert: Alert) -> Alert:
    """Return the alert on a member that works and whose log is not collected, which explains nothing."""
    return replace(alert, severity=SEEN_TO_RUN, items=(UNCOLLECTED,), hearsay=True)


def _while_member(alert: Alert, removed_at: datetime | None) -> Alert | None:
    """Return the alert on a silence of a member that was removed from the cluster: it is over then; None when it had not been
    certain before."""
    if removed_at is None or (alert.ends_at is not None and alert.ends_at <= removed_at):
        return alert
    if removed_at <= alert.last_seen:
        return None
    return replace(alert, status="resolved", ends_at=removed_at, why=TAKEN_OUT)
