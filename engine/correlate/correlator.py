"""The correlator of one scope: gives every item to the clocks, the bindings and the logics that listen, and says what changed.

Its state is a mapping of text to text: the key "head" for what all logics share, and some for each rule that has seen
something (engine/correlate/deltas.py). A logic is made and restored when it is first needed, and stored only when it has
changed.
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
from engine.correlate.deltas import StoredDeltas, forget, read, write
from engine.correlate.logic import Facts, Logic, RuleNotEvaluated
from engine.correlate.nested import Nested
from engine.correlate.state_cache import StateCache
from engine.correlate.wiring import wiring_of
from engine.model.incidents import Evidence, Finding, NotEvaluated, Roster, Verdict, evidence_of
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress, Tick
from engine.model.rules import Plan
from engine.quarantine import Quarantine, attempt

HEAD = "head"
AHEAD = "clock or zone? It prints times that have not come yet; others are not judged by it"
CONTRADICTED = "some of its times lie ahead of what it printed before and after: nothing is judged by these"
TWICE = "its clock was put back, and stamps do not tell which of two hours they are of: no silence that began then is judged"
UNBOUND = "not known whose log it is: its silence is not judged"


class _ScopeSnapshot(Struct):
    """What is stored for the scope as a whole. `deadlines`: when a stored logic must be asked though no match came. State of
    another `layout` cannot be read."""

    layout: Literal[2]
    clocks: dict[str, ClockState] = field(default_factory=dict)
    tick: datetime | None = None
    identities: dict[str, Identity] = field(default_factory=dict)
    bindings_revision: int = 0
    watermark: datetime | None = None
    deadlines: dict[str, datetime | None] = field(default_factory=dict)
    unjudged: dict[str, list[RuleNotEvaluated]] = field(default_factory=dict)
    stored: dict[str, StoredDeltas] = field(default_factory=dict)
    told_roster: str = ""
    told_blinds: str = ""


class Correlator:
    """Correlates what happens in one scope.

    What is said depends on the set of items observed, not on their order, and not on when `flush` was called; a correlator over
    the mapping of an earlier one continues where that was flushed last. Without a mapping nothing is kept. What it takes from
    `resting`, which is for one plan, it leaves there when it is flushed. What raises goes into `quarantine`, and
    costs what cannot be told apart from it: a match for a rule, an entity, or what came for a rule since the last flush;
    without one it is raised. It is `ticking` unless the input has an end: then no tick says what the time is.
    """

    def __init__(
        self,
        plan: Plan,
        scope: str,
        state: MutableMapping[str, str] | None = None,
        resting: StateCache | None = None,
        quarantine: Quarantine | None = None,
        ticking: bool = True,
    ) -> None:
        self._state, self._resting = state, resting
        head = state.get(HEAD) if state is not None else None
        self._head = loads(head, _ScopeSnapshot) if head else _ScopeSnapshot(2)
        clocks = Clocks(self._head.clocks, self._head.tick, ticking)
        bindings = Bindings(plan.components, self._head.identities)
        bindings.revision = self._head.bindings_revision
        self._facts = Facts(scope, clocks, bindings, plan.context, quarantine=quarantine)
        self._wiring = wiring_of(plan)
        self._logics: dict[str, Logic] = {}
        self._nested = Nested(state)
        self._touched: set[str] = set()
        self._listened: set[str] = set()  # rules that a match came for since the last flush
        self._texts: dict[str, Match] = {}
        self._early: list[Verdict | Evidence] = []  # what logics had to say between two flushes
        self._clocks_seen = clocks.revision
        self._bindings_seen = bindings.revision
        self._observed = False

    def observe(self, item: Match | ActivitySpan | Progress | Tick) -> None:
        """Take one item of this scope."""
        self._observed = True
        if isinstance(item, Match):
            self._match(item)
        elif isinstance(item, ActivitySpan):
            self._facts.clocks.heard(item.source_id, item.first, item.last, item.place)
            self._facts.bindings.labels(item.source_id, item.labels)
        elif isinstance(item, Progress):
            self._facts.clocks.progress(item)
        else:
            self._facts.clocks.ticked(item)

    def retract(self, match: Match) -> None:
        """Take back a match that was observed: its event goes on, and its matches will be observed anew."""
        self._observed = True
        self._texts.pop(match.event_id, None)
        self._facts.grown.add(match.event_id)
        for rule_id in self._wiring.listeners.get(match.rule_id, ()):
            self._heard(rule_id, match, self._retract)

    def flush(self) -> list[Finding]:
        """Return what has changed since the last flush, evidence before the alerts it proves; store the state."""
        if not self._observed:
            return []
        due = self._due()
        asked = (rule_id for rule_id in self._wiring.makers if rule_id in due | self._touched)
        changed = [*self._early, *(each for rule_id in asked for each in self._asked(rule_id))]
        verdicts = [finding for finding in changed if isinstance(finding, Verdict)]
        evidence = {e.event_id: e for e in changed if isinstance(e, Evidence)} | self._evidence(verdicts)
        found: list[Finding] = [*self._roster(), *evidence.values(), *verdicts, *self._blinds()]
        self._texts, self._early = {}, []
        self._facts.grown.clear()
        self._touched, self._listened, self._observed = set(), set(), False
        self._clocks_seen, self._bindings_seen = self._facts.clocks.revision, self._facts.bindings.revision
        self._store()
        return found

    def _match(self, match: Match) -> None:
        if match.dated:
            self._facts.clocks.heard(match.source_id, match.at, match.at)
        self._facts.bindings.labels(match.source_id, match.labels)
        if match.rule_id.startswith(("component:", "config:")):
            self._facts.bindings.line(match)
        listeners = self._wiring.listeners.get(match.rule_id, ())
        for rule_id in listeners:
            if not self._heard(rule_id, match, self._take):
                self._heard(rule_id, match, self._retract)  # it may be half in
        if listeners:
            self._texts[match.event_id] = match

    def _heard(self, rule_id: str, match: Match, tell: Callable[[str, Match], None]) -> bool:
        """Tell a rule of a match, or that it is taken back; return whether that could be done."""
        self._listened.add(rule_id)
        done = attempt(self._facts.quarantine, "correlate", match, _truly(tell), rule_id, match, rule_id=rule_id)
        return done is not None

    def _take(self, rule_id: str, match: Match) -> None:
        logic = self._logic(rule_id)
        logic.on_match(match, self._facts)
        if logic.full:
            self._early += self._asked(rule_id)

    def _retract(self, rule_id: str, match: Match) -> None:
        self._logic(rule_id).on_retract(match, self._facts)

    def _asked(self, rule_id: str) -> list[Verdict | Evidence]:
        """Return what a rule says; one that cannot be asked goes on with what it knew when it was stored last, or with nothing
        if that is what it cannot be asked of."""
        said = attempt(self._facts.quarantine, "correlate", self._facts.scope, self._told, rule_id, rule_id=rule_id)
        if said is None:
            self._set_back(rule_id)
        return said or []

    def _told(self, rule_id: str) -> list[Verdict | Evidence]:
        return list(self._ask(rule_id))

    def _set_back(self, rule_id: str) -> None:
        self._logics.pop(rule_id, None)
        stored = self._head.stored.get(rule_id)
        if stored is not None and self._state is not None and rule_id not in self._listened:
            forget(self._state, rule_id, self._head.stored.pop(rule_id))
            self._head.deadlines.pop(rule_id, None)

    def _logic(self, rule_id: str) -> Logic:
        """Return a logic to change or ask, made when it is first needed, and restored if it was stored."""
        logic = self._logics.get(rule_id)
        if logic is None:
            logic = self._logics[rule_id] = self._restored(rule_id, self._head.stored.get(rule_id))
        self._touched.add(rule_id)
        return logic

    def _restored(self, rule_id: str, stored: StoredDeltas | None) -> Logic:
        if stored is None or self._state is None:
            return self._wiring.makers[rule_id]()
        logic = self._resting.take(self._facts.scope, rule_id, stored) if self._resting is not None else None
        if logic is None:
            logic = self._wiring.makers[rule_id]()
            read(self._state, logic, stored)
        return logic

    def _due(self) -> set[str]:
        """Return the rules that may have something to say though no match came for them."""
        watermark = self._facts.clocks.watermark()
        before, self._head.watermark = self._head.watermark, watermark
        rebound = self._facts.bindings.revision != self._bindings_seen
        moved = rebound or self._facts.clocks.revision != self._clocks_seen
        back = before is not None and watermark is not None and watermark < before
        due = {
            rule_id
            for rule_id, deadline in self._head.deadlines.items()
            if rebound or back or (deadline is not None and watermark is not None and deadline <= watermark)
        }
        return due | self._wiring.followers if moved else due

    def _ask(self, rule_id: str) -> Iterator[Verdict | Evidence]:
        logic = self._logic(rule_id)
        logic.on_progress(self._facts)
        for finding in logic.findings(self._facts):
            if rule_id in self._wiring.counted_on and isinstance(finding, Verdict):
                self._pass_on(finding)
            yield logic.told.only_news(finding) if isinstance(finding, Verdict) else finding
        self._head.deadlines[rule_id] = logic.next_deadline()
        self._head.unjudged[rule_id] = sorted(logic.unjudged(self._facts))

    def _pass_on(self, verdict: Verdict) -> None:
        """Tell the correlations that count this one's alerts; they are asked after it."""
        gone, new = self._nested.replaced(verdict)
        for rule_id in self._wiring.listeners[verdict.key[1]]:
            for match in gone:
                self._logic(rule_id).on_retract(match, self._facts)
            for match in new:
                self._logic(rule_id).on_match(match, self._facts)

    def _evidence(self, verdicts: Iterable[Verdict]) -> dict[str, Evidence]:
        """Return the evidence of alerts among the matches observed since the last flush."""
        wanted = {event_id: None for verdict in verdicts for alert in verdict.alerts for event_id in alert.evidence}
        matches = (self._texts[event_id] for event_id in wanted if event_id in self._texts)
        return {match.event_id: evidence_of(match) for match in matches}

    def _roster(self) -> Iterator[Roster]:
        roster = Roster(self._facts.scope, self._facts.bindings.roster())
        said = _digest(roster)
        if roster.members and said != self._head.told_roster:
            self._head.told_roster = said
            yield roster

    def _blinds(self) -> list[NotEvaluated]:
        """Return everything that cannot be judged, when that has changed; first that nothing said before holds any longer."""
        unjudged = [each for rule_id in sorted(self._head.unjudged) for each in self._head.unjudged[rule_id]]
        sources = self._facts.clocks.sources()
        unjudged += [(source_id, AHEAD) for source_id in sources if self._facts.clocks.ahead(source_id)]
        unjudged += [(source_id, CONTRADICTED) for source_id in sources if self._facts.clocks.contradicts_itself(source_id)]
        if self._wiring.followers:
            unjudged += [(source_id, TWICE) for source_id in sources if self._facts.bindings.repeats_an_hour(source_id)]
            unjudged += [(source_id, UNBOUND) for source_id in sources if not self._facts.bindings.bound(source_id)]
        blinds = [NotEvaluated(self._facts.scope, what, why) for what, why in dict.fromkeys(unjudged)]
        said = _digest(blinds) if blinds else ""
        if said == self._head.told_blinds:
            return []
        self._head.told_blinds = said
        return [NotEvaluated(self._facts.scope, "", ""), *blinds]

    def _write(self, logic: Logic) -> StoredDeltas | None:
        """Store a logic; a state that it may be read from is there before anything of it is removed."""
        return write(self._state, logic, self._head.stored.get(logic.rule_id)) if self._state is not None else None

    def _store(self) -> None:
        if self._state is None:
            return
        head, facts = self._head, self._facts
        head.clocks, head.tick = facts.clocks.states(), facts.clocks.tick
        head.identities, head.bindings_revision = facts.bindings.identities, facts.bindings.revision
        self._nested.store()
        for rule_id, logic in sorted(self._logics.items()):
            if not logic.dirty:
                continue
            now = attempt(facts.quarantine, "correlate", facts.scope, self._write, logic, rule_id=rule_id)
            if now is None:
                self._set_back(rule_id)
            else:
                head.stored[rule_id] = now
        self._state[HEAD] = dumps(head)
        if self._resting is not None:
            for rule_id, logic in self._logics.items():
                if rule_id in head.stored:
                    self._resting.leave(facts.scope, logic, head.stored[rule_id])
            self._logics = {}


def _truly(tell: Callable[[str, Match], None]) -> Callable[[str, Match], bool]:
    def told(rule_id: str, match: Match) -> bool:
        tell(rule_id, match)
        return True

    return told


def _digest(value: Roster | list[NotEvaluated]) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]
