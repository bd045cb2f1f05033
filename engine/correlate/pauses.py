"""Absence of a signature: a pause between two of its matches for one entity. Only pauses that are over are alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from engine.correlate.aggregate import Occurrence, occurrence, tally
from engine.correlate.alerts import described
from engine.correlate.entities import Entity, ValuesKey, bound_entity, values_key
from engine.correlate.facts import Facts
from engine.correlate.keyed_state import KeyedState, StateCell
from engine.correlate.runs import Ends, Runs
from engine.correlate.tables import RunsTable
from engine.model.incidents import Alert, AlertKey, Verdict
from engine.model.matches import Match
from engine.model.rules import Correlation
from engine.model.words import worded


class Pauses(KeyedState):
    """Alerts on pauses of at least the rule's time span. Both ends of a pause are matches, so time changes nothing."""

    def __init__(self, correlation: Correlation, of: str, timespan_s: float) -> None:
        super().__init__(correlation.rule, (of,))
        self._names = sorted(correlation.rule.entity.items())
        self._gap = timedelta(seconds=timespan_s)
        encoding = list[tuple[ValuesKey, list[Ends[Occurrence]]]]
        self._runs: RunsTable[ValuesKey, Occurrence] = RunsTable(encoding, lambda _: self._gap)

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one without a time stamp is ignored."""
        if match.dated:
            self._runs.add(values_key(match, self._names, facts.scope), occurrence(match))

    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of all entities, by entity."""
        by_entity = self._by_entity(facts)
        for entity in sorted({*by_entity, *self.emissions.entities()}):
            key = (facts.scope, self.rule_id, entity)
            pauses = by_entity[entity].pauses() if entity in by_entity else ()
            yield Verdict(key, tuple(self._alert(key, pause) for pause in pauses))

    def snapshot(self) -> Mapping[str, StateCell]:
        """Return the runs of matches that no pause interrupts."""
        return {"runs": self._runs}

    def _by_entity(self, facts: Facts) -> dict[Entity, Runs[Occurrence]]:
        merged: dict[Entity, Runs[Occurrence]] = {}
        for (source_id, values), runs in sorted(self._runs.items(), key=lambda item: repr(item[0])):
            entity = bound_entity(self._names, values, source_id, facts)
            merged.setdefault(entity, Runs(self._gap)).merge(runs)
        return merged

    def _alert(self, key: AlertKey, pause: Ends[Occurrence]) -> Alert:
        """Return the alert of a pause; its count is 1, its captures are those of the matches at its two ends."""
        before, after = pause
        alert = Alert(key, "resolved", self.rule.severity, before.at, after.at, after.at, 1, True, why=worded("seen again"))
        return described(alert, tally((before, after)))
