"""The correlator of one scope: passes every item to the clocks, the bindings and the rules that listen; emits what has changed.

Its stored state is a mapping of text to text: the key "head" for what all rules share, and entries for each rule that has
matches (engine/correlate/deltas.py). The state of a rule is made or restored when it is first needed, and stored only when it
is dirty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from engine.codec import dumps, loads
from engine.correlate.bindings import Bindings, Identity
from engine.correlate.clocks import Clocks, ClockState
from engine.correlate.deltas import StoredDeltas, read, remove, write
from engine.correlate.facts import Facts, RuleNotEvaluated
from engine.correlate.keyed_state import KeyedState
from engine.correlate.nested import Nested
from engine.correlate.state_cache import StateCache
from engine.correlate.stated import StatedMembers, answers_of, fact_of
from engine.correlate.wiring import wiring_of
from engine.model.incidents import Evidence, Finding, NotEvaluated, Roster, Verdict, evidence_of
from engine.model.matches import ActivitySpan, Match
from engine.model.pictures import FactKey, StatedFact
from engine.model.records import Progress, Tick
from engine.model.rules import Plan
from engine.quarantine import Quarantine, attempt

HEAD = "head"
AHEAD = "clock or zone? It prints times that have not come yet; others are not judged by it"
CONTRADICTED = "some of its times lie ahead of what it printed before and after: nothing is judged by these"
TWICE = "its clock was put back, and stamps do not tell which of two hours they are of: no silence that began then is judged"
UNBOUND = "not known whose log it is: its silence is not judged"


class _ScopeSnapshot(Struct):
    """The stored state of the scope as a whole. State of another `layout` cannot be read.

    Attributes:
        deadlines: by rule, the watermark at which its stored state must be evaluated although no match came.
        not_evaluated: by rule, its NotEvaluated entries.
        stored: by rule, a description of its stored state.
        roster_digest: a digest of the roster emitted last; likewise `not_evaluated_digest`.
    """

    layout: Literal[3]
    clocks: dict[str, ClockState] = field(default_factory=dict)
    tick: datetime | None = None
    identities: dict[str, Identity] = field(default_factory=dict)
    bindings_revision: int = 0
    stated_members: StatedMembers = field(default_factory=StatedMembers)
    watermark: datetime | None = None
    deadlines: dict[str, datetime | None] = field(default_factory=dict)
    not_evaluated: dict[str, list[RuleNotEvaluated]] = field(default_factory=dict)
    stored: dict[str, StoredDeltas] = field(default_factory=dict)
    roster_digest: str = ""
    not_evaluated_digest: str = ""


class Correlator:
    """Correlates the items of one scope.

    Its findings depend on the set of items observed, neither on their order nor on when `flush` was called.

    Args:
        state: the mapping that state is stored in; a correlator over the mapping of an earlier one continues from its last
            flush. None: nothing is stored.
        cache: states of this plan that are kept between two correlators; they are taken from it and put back by `flush`.
        quarantine: where errors go. An error costs the smallest part that it can be attributed to: a match for a rule, an
            entity, or the matches of a rule since the last flush. Without a quarantine it is raised.
        ticking: whether ticks tell the present time; False for bounded input.
    """

    def __init__(
        self,
        plan: Plan,
        scope: str,
        state: MutableMapping[str, str] | None = None,
        cache: StateCache | None = None,
        quarantine: Quarantine | None = None,
        ticking: bool = True,
    ) -> None:
        self._stored, self._cache = state, cache
        head = state.get(HEAD) if state is not None else None
        self._head = loads(head, _ScopeSnapshot) if head else _ScopeSnapshot(3)
        clocks = Clocks(self._head.clocks, self._head.tick, ticking)
        bindings = Bindings(plan.components, self._head.identities, self._head.stated_members)
        bindings.revision = self._head.bindings_revision
        self._facts = Facts(scope, clocks, bindings, plan.context, quarantine=quarantine)
        self._wiring = wiring_of(plan)
        self._states: dict[str, KeyedState] = {}
        self._nested = Nested(state)
        self._touched: set[str] = set()  # rules whose state was used since the last flush
        self._listened: set[str] = set()  # rules that a match came for since the last flush
        self._matches: dict[str, Match] = {}  # since the last flush, by event id
        self._early: list[Verdict | Evidence] = []  # findings of rules that were full between two flushes
        self._answers = answers_of(plan)
        self._stated: dict[tuple[FactKey, datetime], StatedFact] = {}  # since the last flush
        self._clocks_seen = clocks.revision
        self._bindings_seen = bindings.revision
        self._observed = False

    def observe(self, item: Match | ActivitySpan | Progress | Tick) -> None:
        """Take one item of this scope."""
        self._observed = True
        if isinstance(item, Match):
            self._observe_match(item)
        elif isinstance(item, ActivitySpan):
            self._facts.clocks.add_activity(item.source_id, item.first, item.last, item.place)
            self._facts.bindings.add_labels(item.source_id, item.labels)
        elif isinstance(item, Progress):
            self._facts.clocks.add_progress(item)
        else:
            self._facts.clocks.add_tick(item)

    def retract(self, match: Match) -> None:
        """Retract an observed match: its event has more lines, and its matches will be observed again."""
        self._observed = True
        self._matches.pop(match.event_id, None)
        self._facts.extended.add(match.event_id)
        for rule_id in self._wiring.listeners.get(match.rule_id, ()):
            self._deliver(rule_id, match, self._retract)

    def flush(self) -> list[Finding]:
        """Return what has changed since the last flush, evidence before the verdicts that it proves; store the state."""
        if not self._observed:
            return []
        due = self._due_rules()
        evaluated = (rule_id for rule_id in self._wiring.makers if rule_id in due | self._touched)
        changed = [*self._early, *(finding for rule_id in evaluated for finding in self._evaluate(rule_id))]
        verdicts = [finding for finding in changed if isinstance(finding, Verdict)]
        evidence = {e.event_id: e for e in changed if isinstance(e, Evidence)} | self._evidence(verdicts)
        stated = sorted(self._stated.values(), key=lambda fact: fact.at)
        findings: list[Finding] = [*self._roster(), *stated, *evidence.values(), *verdicts, *self._not_evaluated()]
        self._matches, self._early, self._stated = {}, [], {}
        self._facts.extended.clear()
        self._touched, self._listened, self._observed = set(), set(), False
        self._clocks_seen, self._bindings_seen = self._facts.clocks.revision, self._facts.bindings.revision
        self._store()
        return findings

    def _observe_match(self, match: Match) -> None:
        if match.dated:
            self._facts.clocks.add_activity(match.source_id, match.at, match.at)
        self._facts.bindings.add_labels(match.source_id, match.labels)
        if match.rule_id.startswith(("component:", "config:")):
            self._facts.bindings.add_line(match)
            if (fact := fact_of(match, self._facts.scope, self._answers)) is not None:
                self._stated[fact.key, fact.at] = fact
                self._facts.bindings.add_fact(fact)
        listeners = self._wiring.listeners.get(match.rule_id, ())
        for rule_id in listeners:
            if not self._deliver(rule_id, match, self._take):
                self._deliver(rule_id, match, self._retract)  # it may have been added in part
        if listeners:
            self._matches[match.event_id] = match

    def _deliver(self, rule_id: str, match: Match, method: Callable[[str, Match], None]) -> bool:
        """Call `method` with the match; return whether it succeeded. Otherwise the match is in quarantine."""
        self._listened.add(rule_id)
        done = attempt(self._facts.quarantine, "correlate", match, _with_result(method), rule_id, match, rule_id=rule_id)
        return done is not None

    def _take(self, rule_id: str, match: Match) -> None:
        state = self._state_of(rule_id)
        state.on_match(match, self._facts)
        if state.full:
            self._early += self._evaluate(rule_id)

    def _retract(self, rule_id: str, match: Match) -> None:
        self._state_of(rule_id).on_retract(match, self._facts)

    def _evaluate(self, rule_id: str) -> list[Verdict | Evidence]:
        """Return the findings of a rule; one that fails continues from its stored state, or empty if that fails too."""
        findings = attempt(self._facts.quarantine, "correlate", self._facts.scope, self._all_findings, rule_id, rule_id=rule_id)
        if findings is None:
            self._set_back(rule_id)
        return findings or []

    def _all_findings(self, rule_id: str) -> list[Verdict | Evidence]:
        return list(self._findings(rule_id))

    def _set_back(self, rule_id: str) -> None:
        """Drop the state of a rule in memory, and the stored one too if no match came since the last flush."""
        self._states.pop(rule_id, None)
        stored = self._head.stored.get(rule_id)
        if stored is not None and self._stored is not None and rule_id not in self._listened:
            remove(self._stored, rule_id, self._head.stored.pop(rule_id))
            self._head.deadlines.pop(rule_id, None)

    def _state_of(self, rule_id: str) -> KeyedState:
        """Return the state of a rule, made or restored when it is first needed."""
        state = self._states.get(rule_id)
        if state is None:
            state = self._states[rule_id] = self._restored(rule_id, self._head.stored.get(rule_id))
        self._touched.add(rule_id)
        return state

    def _restored(self, rule_id: str, of_rule: StoredDeltas | None) -> KeyedState:
        if of_rule is None or self._stored is None:
            return self._wiring.makers[rule_id]()
        state = self._cache.take(self._facts.scope, rule_id, of_rule) if self._cache is not None else None
        if state is None:
            state = self._wiring.makers[rule_id]()
            read(self._stored, state, of_rule)
        return state

    def _due_rules(self) -> set[str]:
        """Return the rules whose verdicts may have changed although no match came for them."""
        watermark = self._facts.clocks.watermark()
        before, self._head.watermark = self._head.watermark, watermark
        rebound = self._facts.bindings.revision != self._bindings_seen
        moved = rebound or self._facts.clocks.revision != self._clocks_seen
        went_back = before is not None and watermark is not None and watermark < before
        due = {
            rule_id
            for rule_id, deadline in self._head.deadlines.items()
            if rebound or went_back or (deadline is not None and watermark is not None and deadline <= watermark)
        }
        return due | self._wiring.followers if moved else due

    def _findings(self, rule_id: str) -> Iterator[Verdict | Evidence]:
        state = self._state_of(rule_id)
        for finding in state.findings(self._facts):
            if rule_id in self._wiring.counted_on and isinstance(finding, Verdict):
                self._pass_on(finding)
            yield state.emissions.only_news(finding) if isinstance(finding, Verdict) else finding
        self._head.deadlines[rule_id] = state.timers.next()
        self._head.not_evaluated[rule_id] = sorted(state.not_evaluated(self._facts))

    def _pass_on(self, verdict: Verdict) -> None:
        """Pass the alerts of a correlation to those that count them; they are evaluated after it."""
        removed, added = self._nested.replace(verdict)
        for rule_id in self._wiring.listeners[verdict.key[1]]:
            for match in removed:
                self._state_of(rule_id).on_retract(match, self._facts)
            for match in added:
                self._state_of(rule_id).on_match(match, self._facts)

    def _evidence(self, verdicts: Iterable[Verdict]) -> dict[str, Evidence]:
        """Return the evidence of the verdicts among the matches since the last flush, by event id."""
        wanted = {event_id: None for verdict in verdicts for alert in verdict.alerts for event_id in alert.evidence}
        matches = (self._matches[event_id] for event_id in wanted if event_id in self._matches)
        return {match.event_id: evidence_of(match) for match in matches}

    def _roster(self) -> Iterator[Roster]:
        """Yield the roster if it has members and has changed."""
        roster = Roster(self._facts.scope, self._facts.bindings.roster())
        digest = _digest(roster)
        if roster.members and digest != self._head.roster_digest:
            self._head.roster_digest = digest
            yield roster

    def _not_evaluated(self) -> list[NotEvaluated]:
        """Return everything that cannot be judged, if that has changed; the first is empty and withdraws all earlier ones."""
        by_rule = self._head.not_evaluated
        pairs = [pair for rule_id in sorted(by_rule) for pair in by_rule[rule_id]]
        sources = self._facts.clocks.sources()
        pairs += [(source_id, AHEAD) for source_id in sources if self._facts.clocks.ahead(source_id)]
        pairs += [(source_id, CONTRADICTED) for source_id in sources if self._facts.clocks.contradicts_itself(source_id)]
        if self._wiring.followers:
            pairs += [(source_id, TWICE) for source_id in sources if self._facts.bindings.repeats_an_hour(source_id)]
            pairs += [(source_id, UNBOUND) for source_id in sources if not self._facts.bindings.bound(source_id)]
        not_evaluated = [NotEvaluated(self._facts.scope, subject, why) for subject, why in dict.fromkeys(pairs)]
        digest = _digest(not_evaluated) if not_evaluated else ""
        if digest == self._head.not_evaluated_digest:
            return []
        self._head.not_evaluated_digest = digest
        return [NotEvaluated(self._facts.scope, "", ""), *not_evaluated]

    def _store(self) -> None:
        if self._stored is None:
            return
        head, facts = self._head, self._facts
        head.clocks, head.tick = facts.clocks.states(), facts.clocks.tick
        head.identities, head.bindings_revision = facts.bindings.identities, facts.bindings.revision
        self._nested.store()
        for rule_id, state in sorted(self._states.items()):
            if not state.dirty:
                continue
            of_rule = attempt(facts.quarantine, "correlate", facts.scope, self._write, state, rule_id=rule_id)
            if of_rule is None:
                self._set_back(rule_id)
            else:
                head.stored[rule_id] = of_rule
        self._stored[HEAD] = dumps(head)
        if self._cache is not None:
            for rule_id, state in self._states.items():
                if rule_id in head.stored:
                    self._cache.put(facts.scope, state, head.stored[rule_id])
            self._states = {}

    def _write(self, state: KeyedState) -> StoredDeltas | None:
        """Store a state; return its description, None when nothing is stored. New entries are written before older ones are
        removed."""
        return write(self._stored, state, self._head.stored.get(state.rule_id)) if self._stored is not None else None


def _with_result(method: Callable[[str, Match], None]) -> Callable[[str, Match], bool]:
    """Return `method` with True as its result, so that a call that succeeded can be told from one that failed."""

    def call(rule_id: str, match: Match) -> bool:
        method(rule_id, match)
        return True

    return call


def _digest(value: Roster | list[NotEvaluated]) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]
