"""Pairs: an opening that no expected match follows in time. Evaluated at the watermark, so that no alert comes too early.

An opening at t is answered by any expected match in [t, t + within], both ends included; one answer closes all open ones.
Answers can only be added, never removed, so an answered opening may be dropped, and of answers no more than `within` apart only
the first and the last are needed: any opening between them is answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.correlate.aggregate import Occurrence, occurrence
from engine.correlate.alerts import alert_of
from engine.correlate.entities import Entity, EntityIndex, ValuesKey, bound_entity, values_key
from engine.correlate.entries import entries
from engine.correlate.episodes import Episode, Signal, episodes
from engine.correlate.expiry import IDLE_FOR, Expiry
from engine.correlate.facts import Facts, RuleNotEvaluated, SeenFacts
from engine.correlate.keyed_state import KeyedState, StateCell
from engine.correlate.open_table import MAX_ANSWERS, Answers, ClosingMatch, OpenTable
from engine.correlate.windows import Occurrences, Sliding
from engine.model.incidents import Alert, Verdict
from engine.model.matches import Match
from engine.model.rules import Correlation

_INSTANT = timedelta(microseconds=1)


class Pairs(KeyedState):
    """Alerts on openings without an answer.

    Args:
        not_during: the states in which a source opens nothing.
    """

    def __init__(self, correlation: Correlation, not_during: Collection[str] = ()) -> None:
        super().__init__(correlation.rule, (*correlation.rules, *correlation.expect))
        self._opens = frozenset(correlation.rules)
        self._not_during = not_during
        self._clear = replace(self.rule.clear, at_most=0, quiet_s=0.0)
        self._within = timedelta(seconds=correlation.timespan_s)
        self._opening = Sliding(Occurrences, lambda count: count >= 1, self._within + _INSTANT)
        self._names = sorted(self.rule.entity.items())
        self._table = OpenTable(self._within)
        self._index: EntityIndex[ValuesKey] = EntityIndex()
        self._is_bound = True  # whether the index is complete; it is not after `restore`
        self._last_facts = SeenFacts()
        self._expiry = Expiry()
        self._changed: set[ValuesKey] = set()
        self._unevaluated = 0  # matches since the last evaluation

    @property
    def full(self) -> bool:
        """Whether one more match might join answers that openings have not been compared with."""
        return self._unevaluated >= MAX_ANSWERS

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one without a time stamp is ignored."""
        if not match.dated:
            return
        key, tick = values_key(match, self._names, facts.scope), facts.clocks.tick
        self._bind_all(facts, of_all=False)
        if key not in self._table:
            self._expire(tick)
            for removed in self._table.admit(key, tick):
                self._remove(removed)
            if key not in self._table:
                return
            self._index.bind(key, self._entity(key, facts))
        self._unevaluated += 1
        self._changed.add(key)
        if match.rule_id in self._opens:
            self._table.open(key, occurrence(match), tick)
        else:
            self._table.answer(key, ClosingMatch(match.at, match.rule_id), tick)

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Take an opening back; an answer stays, as its event is matched again at the same time."""
        key = values_key(match, self._names, facts.scope)
        if match.rule_id in self._opens and self._table.retract(key, match.event_id):
            self._changed.add(key)

    def on_watermark(self, facts: Facts) -> None:
        """Mark entities whose bindings have changed or whose timer is due; drop idle ones."""
        rebound, went_back = self._last_facts.update(facts)
        self._bind_all(facts, of_all=rebound)
        watermark = facts.clocks.watermark()
        due = self.timers.due(watermark) if watermark is not None else set()
        if rebound or went_back:
            self._changed |= set(self._index)
        self._changed |= {key for entity in due for key in self._index.keys(entity)}
        self._expire(facts.clocks.tick)

    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of the entities that have changed, by entity."""
        changed, self._changed, self._unevaluated = self._changed, set(), 0
        if not changed:
            return
        entities = {self._index.entity(key) for key in changed if key in self._index}
        for entity in sorted(entities | (self.emissions.entities() - self._index.entities())):
            opened, answers = self._table.settle(sorted(self._index.keys(entity), key=repr))
            alerts = self._alerts(entity, opened, answers, facts)
            yield Verdict((facts.scope, self.rule_id, entity), alerts, self._final_before(answers))

    def snapshot(self) -> Mapping[str, StateCell]:
        """Return the cells of the openings and answers, of the facts at the last evaluation, and of the expiry of idle
        entities."""
        return {"table": self._table, "seen": self._last_facts, "expiry": self._expiry}

    def restore(self, encoded: str, *changes: str) -> None:
        """Continue from an encoded state; the entities are found with the next match or evaluation."""
        super().restore(encoded, *changes)
        self._is_bound = False

    def not_evaluated(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return the bounds that are exceeded."""
        return [(self.rule_id, sentence) for sentence in self._table.sentences()]

    def _entity(self, key: ValuesKey, facts: Facts) -> Entity:
        source_id, values = key
        return bound_entity(self._names, values, source_id, facts)

    def _bind_all(self, facts: Facts, of_all: bool) -> None:
        """Compute the entity of every key: `of_all`, or after a restore."""
        if of_all or not self._is_bound:
            self._index, self._is_bound = EntityIndex(), True
            for key in self._table:
                self._index.bind(key, self._entity(key, facts))

    def _alerts(self, entity: Entity, opened: Sequence[Occurrence], answers: Answers, facts: Facts) -> tuple[Alert, ...]:
        opened = [opening for opening in opened if not self._is_left_out(opening, facts)]
        watermark = facts.clocks.watermark()
        overdue = [opening for opening in opened if watermark is not None and opening.at + self._within <= watermark]
        signals: list[Signal] = sorted((first.at, first.event_id) for first, _ in answers)
        in_order = episodes(entries(overdue, 0.0), signals, self._opening, self._clear, watermark)
        self._set_timer(entity, [opening.at + self._within for opening in opened if opening not in overdue], in_order)
        key = (facts.scope, self.rule_id, entity)
        alerts = (alert_of(key, self.rule, episode, watermark, True) for episode in in_order)
        return tuple(alert for alert in alerts if alert is not None)

    def _is_left_out(self, opening: Occurrence, facts: Facts) -> bool:
        return bool(self._not_during) and facts.bindings.during(opening.source_id, self._not_during, opening.at)

    def _set_timer(self, entity: Entity, deadlines: Iterable[datetime], in_order: Sequence[Episode]) -> None:
        """Set when `entity` has to be evaluated again although no match came."""
        last = in_order[-1] if in_order else None
        times = [*deadlines]
        if last is not None and last.ending is None:
            times += [last.due] if last.due is not None else []
            times += [last.since + timedelta(seconds=self.rule.for_s)] if self.rule.for_s else []
        evaluated = self._last_facts.watermark
        waiting = [at for at in times if evaluated is None or at > evaluated]
        if waiting:
            self.timers.start(entity, min(waiting))
        else:
            self.timers.cancel(entity)

    def _final_before(self, answers: Answers) -> datetime | None:
        """Return the time before which the verdict is final: answers are joined there, or were dropped."""
        joined = next((last.at for _, last in answers), None) if len(answers) >= MAX_ANSWERS else None
        return max((at for at in (joined, self._expiry.final_before) if at is not None), default=None)

    def _expire(self, tick: datetime | None) -> None:
        """Drop keys that wait for nothing and were idle for a day of ticks."""
        if tick is None or not self._expiry.begin(tick):
            return
        self._table.rest(tick, IDLE_FOR)
        for key in self._table.idle(tick, IDLE_FOR):
            if key not in self._changed and self._index.entity(key) not in self.timers:
                self._expiry.drop(self._table.drop(key))
                self.emissions.forget(self._remove(key))

    def _remove(self, key: ValuesKey) -> Entity:
        self._changed.discard(key)
        return self._index.unbind(key)
