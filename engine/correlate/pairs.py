"""Pairs: what opened and was not followed in time by what has to follow. Judged at the watermark, so nobody is blamed early.

An opening at t is answered by anything expected in [t, t + within], both ends included; one answer serves all that are open.
Answers can only come in, never go, so an answered opening may be forgotten, and of answers no more than `within` apart only the
first and last need be known: whatever opens between them is answered.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from engine.codec import dumps, loads
from engine.correlate.aggregate import Occurrence, occurrence
from engine.correlate.alerts import alert_of
from engine.correlate.crowd import Border, Crowd
from engine.correlate.entries import entries
from engine.correlate.episodes import Episode, Signal, episodes
from engine.correlate.logic import Emissions, Entity, Facts, RuleNotEvaluated, bound_entity, word_value
from engine.correlate.runs import Runs
from engine.correlate.windows import Occurrences, Sliding
from engine.model.incidents import Alert, Verdict
from engine.model.matches import Match
from engine.model.rules import Correlation

MAX_OPEN = 2000  # of one place
MAX_ANSWERS = 1000  # runs of one place
MAX_PLACES = 20_000
FORGOTTEN_AFTER = timedelta(hours=24)
_SWEPT_EVERY = timedelta(hours=1)
_INSTANT = timedelta(microseconds=1)

PairKey = tuple[str, tuple[str | None, ...]]  # source (when a value is missing), values of the entity by sorted label


class ClosingMatch(Struct, frozen=True):
    """When which rule was seen that answers."""

    at: datetime
    event_id: str  # the rule's id: its event is of no interest


Answers = Runs[ClosingMatch]


class _PairsSnapshot(Struct, frozen=True):
    opened: list[tuple[PairKey, list[Occurrence]]] = field(default_factory=list)
    answers: list[tuple[PairKey, list[tuple[ClosingMatch, ClosingMatch]]]] = field(default_factory=list)
    told: list[tuple[Entity, str]] = field(default_factory=list)
    due: list[tuple[Entity, datetime]] = field(default_factory=list)
    touched: list[tuple[PairKey, datetime]] = field(default_factory=list)
    final_before: datetime | None = None
    swept: datetime | None = None
    refused: int = 0
    bindings_seen: int = -1
    watermark_seen: datetime | None = None
    border: Border = Border()


class Pairs:
    """Finds openings without an answer (see Logic)."""

    follows_clocks = False

    def __init__(self, correlation: Correlation) -> None:
        rule = correlation.rule
        self.rule_id = rule.id
        self.dirty = False
        self.listens = frozenset((*correlation.rules, *correlation.expect))
        self._rule, self._opens = rule, frozenset(correlation.rules)
        self._clear = replace(rule.clear, at_most=0, quiet_s=0.0)
        self._within = timedelta(seconds=correlation.timespan_s)
        self._opening = Sliding(Occurrences, lambda count: count >= 1, self._within + _INSTANT)
        self._words = sorted(rule.entity.items())
        self._opened: dict[PairKey, list[Occurrence]] = {}
        self._answers: dict[PairKey, Answers] = {}
        self.told = Emissions()
        self._due: dict[Entity, datetime] = {}
        self._touched: dict[PairKey, datetime] = {}  # the newest tick at which something was added
        self._final_before: datetime | None = None
        self._swept: datetime | None = None
        self._refused = 0
        self._crowd: Crowd[PairKey] = Crowd(MAX_PLACES)
        self._entity_of: dict[PairKey, Entity] = {}
        self._at: dict[Entity, set[PairKey]] = {}
        self._is_bound = True  # whether these two are known
        self._asked: set[PairKey] = set()
        self._taken = 0  # matches since it was asked last
        self._bindings_seen = -1
        self._complete_seen: datetime | None = None

    @property
    def full(self) -> bool:
        """Return whether one match more might join answers that openings have not been held against."""
        return self._taken >= MAX_ANSWERS

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one without a stamp says nothing."""
        place = self._place(match, facts)
        if not match.dated:
            return
        self.dirty = True
        if not self._is_bound:
            self._rebind(facts)
        if place not in self._entity_of and not self._take(place, facts):
            return
        self._taken += 1
        self._asked.add(place)
        if facts.clocks.tick is not None:
            self._touched[place] = facts.clocks.tick
        if match.rule_id in self._opens:
            self._open(place, occurrence(match))
        else:
            self._answers.setdefault(place, self._no_answers()).add(ClosingMatch(match.at, match.rule_id))

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Take an opening back; an answer stays, for its event is matched again at the same time."""
        place = self._place(match, facts)
        kept = [each for each in self._opened.get(place, ()) if each.event_id != match.event_id]
        if match.rule_id in self._opens and len(kept) < len(self._opened.get(place, ())):
            self._opened[place] = kept
            self._asked.add(place)
            self.dirty = True

    def on_progress(self, facts: Facts) -> None:
        """Take note of new bindings, and of deadlines that have come."""
        watermark = facts.clocks.watermark()
        rebound = facts.bindings.revision != self._bindings_seen
        if rebound or not self._is_bound:
            self._rebind(facts)
        back = watermark is not None and self._complete_seen is not None and watermark < self._complete_seen
        come = {entity for entity, due in self._due.items() if watermark is not None and due <= watermark}
        if rebound or back:
            self._asked |= self._opened.keys()
        elif come:
            self._asked |= {place for entity in come for place in self._at.get(entity, ())}
        self._bindings_seen, self._complete_seen = facts.bindings.revision, watermark
        self._sweep(facts)

    def next_deadline(self) -> datetime | None:
        """Return when the first opening has waited long enough, or an alert may be over."""
        return min(self._due.values(), default=None)

    def findings(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of the entities whose alerts have changed."""
        asked, self._asked, self._taken = self._asked, set(), 0
        if not asked:
            return
        entities = {self._entity_of[place] for place in asked if place in self._entity_of}
        for entity in sorted(entities | (self.told.entities() - self._at.keys())):
            found = self._answered(sorted(self._at.get(entity, ()), key=repr))
            alerts = self._alerts(entity, *found, facts)
            if self.told.is_news(entity, alerts, facts):
                self.dirty = True
                yield Verdict((facts.scope, self.rule_id, entity), alerts, self._settled(found[1]))

    def unjudged(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return what is more than can be kept."""
        found = [(self.rule_id, f"{self._refused} matches were more than it can keep")] if self._refused else []
        if self._crowd.beyond:
            told = f"more than {len(self._crowd):,} entities: about {self._crowd.beyond:,} others are not kept and not judged"
            found.append((self.rule_id, told))
        return found

    def snapshot(self) -> str:
        """Return everything as JSON."""
        self.dirty = False
        opened = [(place, some) for place, some in self._opened.items() if some]
        answers = [(place, list(runs)) for place, runs in self._answers.items()]
        return dumps(
            _PairsSnapshot(
                opened,
                answers,
                self.told.stored(),
                due=list(self._due.items()),
                touched=list(self._touched.items()),
                final_before=self._final_before,
                swept=self._swept,
                refused=self._refused,
                bindings_seen=self._bindings_seen,
                watermark_seen=self._complete_seen,
                border=self._crowd.border,
            )
        )

    def changes(self) -> None:
        """Return None: it is little, and much of it changes."""

    def restore(self, text: str, *since: str) -> None:
        """Continue from a snapshot; there are no changes after it."""
        state = loads(text, _PairsSnapshot)
        self._opened = dict(state.opened)
        self._answers = {place: self._no_answers(runs) for place, runs in state.answers}
        self.told, self._due, self._refused = Emissions(state.told), dict(state.due), state.refused
        self._bindings_seen, self._complete_seen = state.bindings_seen, state.watermark_seen
        self._touched, self._final_before, self._swept = dict(state.touched), state.final_before, state.swept
        self._crowd, self._is_bound = Crowd(MAX_PLACES, None, state.border), False
        for place in {*self._opened, *self._answers}:
            for gone in self._crowd.take(place, None):
                self._opened.pop(gone, None)
                self._answers.pop(gone, None)

    def _no_answers(self, runs: list[tuple[ClosingMatch, ClosingMatch]] | tuple[()] = ()) -> Answers:
        return Runs(self._within + _INSTANT, runs, MAX_ANSWERS)  # exactly `within` apart is joined too

    def _take(self, place: PairKey, facts: Facts) -> bool:
        """Make room for a new place; return whether it is kept."""
        self._sweep(facts)
        if not self._crowd.admits(place, facts.clocks.tick):
            return False
        self._bind(place, self._entity(place, facts))
        for gone in self._crowd.take(place, facts.clocks.tick):
            self._drop(gone)
        return place in self._entity_of

    def _bind(self, place: PairKey, entity: Entity) -> None:
        self._entity_of[place] = entity
        self._at.setdefault(entity, set()).add(place)

    def _drop(self, place: PairKey) -> tuple[list[Occurrence], Answers]:
        """Forget a place; return what was kept of it."""
        entity = self._entity_of.pop(place)
        self._at[entity].discard(place)
        if not self._at[entity]:
            del self._at[entity]
        self._touched.pop(place, None)
        self._asked.discard(place)
        return self._opened.pop(place, []), self._answers.pop(place, self._no_answers())

    def _rebind(self, facts: Facts) -> None:
        """Find the entity of every place anew."""
        self._entity_of, self._at, self._is_bound = {}, {}, True
        for place in {*self._opened, *self._answers}:
            self._bind(place, self._entity(place, facts))

    def _open(self, place: PairKey, opening: Occurrence) -> None:
        kept = self._opened.setdefault(place, [])
        if all(opening.event_id != each.event_id for each in kept):
            insort(kept, opening, key=lambda each: (each.at, each.event_id))
        if len(kept) > MAX_OPEN:
            del kept[0]
            self._refused += 1

    def _place(self, match: Match, facts: Facts) -> PairKey:
        values = tuple(word_value(match, label, word, facts.scope) for label, word in self._words)
        return (match.source_id if None in values else "", values)

    def _entity(self, place: PairKey, facts: Facts) -> Entity:
        source_id, values = place
        return bound_entity(self._words, values, source_id, facts)

    def _answered(self, places: list[PairKey]) -> tuple[list[Occurrence], Answers]:
        """Return what is open at `places` and the answers there; what is answered is forgotten."""
        answers = self._no_answers()
        for place in places:
            answers.merge(self._answers.get(place, self._no_answers()))
        runs = list(answers)
        for place in places:
            kept = [each for each in self._opened.get(place, ()) if not self._is_answered(each.at, runs)]
            if len(kept) < len(self._opened.get(place, ())):
                self._opened[place], self.dirty = kept, True
        return [each for place in places for each in self._opened.get(place, ())], answers

    def _is_answered(self, at: datetime, runs: Sequence[tuple[ClosingMatch, ClosingMatch]]) -> bool:
        position = bisect_left(runs, at, key=lambda run: run[1].at)
        return position < len(runs) and runs[position][0].at - self._within <= at

    def _alerts(self, entity: Entity, opened: list[Occurrence], answers: Answers, facts: Facts) -> tuple[Alert, ...]:
        watermark = facts.clocks.watermark()
        overdue = [each for each in opened if watermark is not None and each.at + self._within <= watermark]
        signals: list[Signal] = sorted((first.at, first.event_id) for first, _ in answers)
        found = episodes(entries(overdue, 0.0), signals, self._opening, self._clear, watermark)
        self._note_due(entity, [each.at + self._within for each in opened if each not in overdue], found)
        key = (facts.scope, self.rule_id, entity)
        alerts = (alert_of(key, self._rule, episode, watermark, True) for episode in found)
        return tuple(alert for alert in alerts if alert is not None)

    def _note_due(self, entity: Entity, waiting: list[datetime], found: list[Episode]) -> None:
        """Remember when `entity` has to be looked at again though no match came."""
        going_on = [found[-1]] if found and found[-1].ending is None else []
        held = [each.since + timedelta(seconds=self._rule.for_s) for each in going_on if self._rule.for_s]
        seen = self._complete_seen
        due = [at for at in (*waiting, *held, *(each.due for each in going_on)) if at and (seen is None or at > seen)]
        self._due.pop(entity, None)
        if due:
            self._due[entity] = min(due)

    def _settled(self, answers: Answers) -> datetime | None:
        """Return the time before which what was said stands: answers are no longer told apart there, or were forgotten."""
        joined = next((last.at for _, last in answers), None) if len(answers) >= MAX_ANSWERS else None
        return max((at for at in (joined, self._final_before) if at is not None), default=None)

    def _sweep(self, facts: Facts) -> None:
        """Forget places that wait for nothing and had nothing for a day of ticks; what was said of them is final."""
        tick = facts.clocks.tick
        if tick is None or (self._swept is not None and tick - self._swept < _SWEPT_EVERY):
            return
        self._swept, self.dirty = tick, True
        self._crowd.rest(tick, FORGOTTEN_AFTER)
        for place in list(self._entity_of):
            idle = tick - self._touched.setdefault(place, tick) >= FORGOTTEN_AFTER
            if idle and place not in self._asked and self._entity_of[place] not in self._due:
                self._forget(place)

    def _forget(self, place: PairKey) -> None:
        entity = self._entity_of[place]
        opened, answers = self._drop(place)
        self._crowd.give(place)
        last = max((*(each.at for each in opened), *(end.at for _, end in answers)), default=None)
        if last is not None:
            self._final_before = max(self._final_before or last, last + _INSTANT)
        self.told.forget(entity)
