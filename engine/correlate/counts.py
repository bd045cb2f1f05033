"""Counting: matches by entity, evaluated into alerts when something was added or a timer is due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from engine.correlate.asked import NOBODY_ASKED, AskedRules
from engine.correlate.entities import Entity
from engine.correlate.episodes import Episode
from engine.correlate.evaluation import Evaluation
from engine.correlate.expiry import IDLE_FOR, Expiry
from engine.correlate.facts import Facts, RuleNotEvaluated, SeenFacts
from engine.correlate.keyed_state import KeyedState, StateCell
from engine.correlate.measure import Counted, Measure
from engine.correlate.series_table import SeriesTable
from engine.correlate.speakers import ANYBODY, Speakers, Voices
from engine.model.incidents import Alert, Verdict
from engine.model.matches import Match
from engine.model.rules import Rule
from engine.quarantine import attempt


class Counts(KeyedState):
    """Measures the matches of `counted` in windows; signals of the rule's `clear` end an alert."""

    def __init__(
        self,
        rule: Rule,
        counted: Sequence[Counted],
        measure: Measure,
        speakers: Speakers = ANYBODY,
        asked: AskedRules = NOBODY_ASKED,
    ) -> None:
        self._counted = {of_rule.rule_id: of_rule for of_rule in counted}
        super().__init__(rule, (*self._counted, *rule.clear.signs))
        self._measure = measure
        self._idle_for = max(IDLE_FOR, measure.opening.timespan)
        voices = Voices.of(rule, speakers)
        asked = {id_: labels for id_, labels in asked.items() if id_ in rule.clear.signs}
        self._table = SeriesTable(rule, self._counted, measure, voices.speakers, asked)
        self._evaluation = Evaluation(rule, self._counted, measure, voices, self._table)
        self._last_facts = SeenFacts()
        self._expiry = Expiry()

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one of a counted rule that lacks the measured capture is ignored."""
        if match.rule_id in self._counted and not self._measure.takes(match):
            return
        key = self._table.key_of(match, facts.scope)
        if key not in self._table:
            self._expire(facts.clocks.tick)
        self._table.add(key, match, facts)

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Take a match back."""
        self._table.retract(self._table.key_of(match, facts.scope), match.event_id)

    def on_watermark(self, facts: Facts) -> None:
        """Mark entities whose bindings have changed or whose timer is due; drop idle ones."""
        rebound, went_back = self._last_facts.update(facts)
        if rebound:
            self._table.rebind(facts, of_all=bool(self._evaluation.settings))
        watermark = facts.clocks.watermark()
        if watermark is not None:
            self._table.changed |= self.timers.due(watermark)
            if went_back:
                self._table.changed |= self._table.entities()
        self._expire(facts.clocks.tick)

    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of the entities that have changed, by entity; one that fails goes into quarantine."""
        for entity in sorted(self._table.changed):
            named = ", ".join(f"{label}={value}" for label, value in entity)
            alerts = attempt(facts.quarantine, "correlate", named, self._evaluate, entity, facts, rule_id=self.rule_id)
            if alerts is None:
                self._give_up(entity)
                continue
            yield Verdict((facts.scope, self.rule_id, entity), alerts, self._expiry.final_before)
        self._table.changed = set()

    def snapshot(self) -> Mapping[str, StateCell]:
        """Return the cells of the matches, of the facts at the last evaluation, and of the expiry of idle entities."""
        return {"table": self._table, "seen": self._last_facts, "expiry": self._expiry}

    def not_evaluated(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return the counted rules left out because of versions, and which entities are not kept apart."""
        not_apart = [(self.rule_id, sentence) for sentence in self._table.limit.sentences(self._measure.single)]
        return [*self._table.versions.not_evaluated(), *not_apart]

    def _evaluate(self, entity: Entity, facts: Facts) -> tuple[Alert, ...]:
        alerts, in_order = self._evaluation.evaluate(entity, facts)
        self._set_timer(entity, in_order, facts.clocks.watermark())
        return alerts

    def _set_timer(self, entity: Entity, in_order: Sequence[Episode], watermark: datetime | None) -> None:
        """Set when the last episode of `entity` has to be evaluated again although no match came."""
        last = in_order[-1] if in_order else None
        if last is None or last.ending is not None:
            self.timers.cancel(entity)
            return
        confirmed = last.since + timedelta(seconds=self.rule.for_s)
        times = [at for at in (confirmed, last.due) if at and (watermark is None or at > watermark)]
        self.timers.start(entity, min(times, default=None))

    def _expire(self, tick: datetime | None) -> None:
        """Drop entities whose alerts are over and that were idle for a day of ticks, or for as long as the window."""
        if tick is None or not self._expiry.begin(tick):
            return
        for entity in self._table.idle(tick, self._idle_for):
            if entity not in self.timers and entity not in self._table.changed:
                self._expiry.drop(self._table.drop(entity))
                self._evaluation.forget(entity)
                self.emissions.forget(entity)
        self._table.limit.rest(tick, self._idle_for)

    def _give_up(self, entity: Entity) -> None:
        """Drop an entity that cannot be evaluated, because it would fail each time; its last verdict remains."""
        self._table.drop(entity)
        self._evaluation.forget(entity)
        self.timers.cancel(entity)
