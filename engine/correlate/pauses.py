"""Absence of a signature: a pause between two of its matches for one entity. Only pauses with an end are told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from msgspec import Struct, field

from engine.codec import dumps, loads
from engine.correlate.aggregate import Occurrence, occurrence, tally
from engine.correlate.alerts import described
from engine.correlate.logic import Emissions, Entity, Facts, RuleNotEvaluated, bound_entity, word_value
from engine.correlate.runs import Ends, Runs
from engine.model.incidents import Alert, AlertKey, Verdict
from engine.model.matches import Match
from engine.model.rules import Correlation

PauseKey = tuple[str, tuple[str | None, ...]]  # source (when a value is missing), values of the entity by sorted label


class _PausesSnapshot(Struct, frozen=True):
    runs: list[tuple[PauseKey, list[tuple[Occurrence, Occurrence]]]] = field(default_factory=list)
    told: list[tuple[Entity, str]] = field(default_factory=list)


class Pauses:
    """Finds pauses of at least the rule's timespan (see Logic)."""

    follows_clocks = False
    full = False

    def __init__(self, correlation: Correlation, of: str, timespan_s: float) -> None:
        self.rule_id = correlation.rule.id
        self.listens = frozenset((of,))
        self.dirty = False
        self._rule = correlation.rule
        self._words = sorted(correlation.rule.entity.items())
        self._gap = timedelta(seconds=timespan_s)
        self._runs: dict[PauseKey, Runs[Occurrence]] = {}
        self.told = Emissions()

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one without a stamp says nothing."""
        if match.dated:
            self.dirty = True
            self._runs.setdefault(self._place(match, facts), Runs(self._gap)).add(occurrence(match))

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Leave the match: its event is matched again at the same time."""

    def on_progress(self, facts: Facts) -> None:
        """Nothing depends on time: both ends of a pause are matches."""

    def next_deadline(self) -> None:
        """Return None: only matches change what is said."""

    def findings(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of the entities whose pauses have changed."""
        by_entity = self._by_entity(facts)
        for entity in sorted({*by_entity, *self.told.entities()}):
            key = (facts.scope, self.rule_id, entity)
            pauses = by_entity[entity].pauses() if entity in by_entity else ()
            alerts = tuple(self._alert(key, pause) for pause in pauses)
            if self.told.is_news(entity, alerts, facts):
                self.dirty = True
                yield Verdict(key, alerts)

    def unjudged(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return nothing: a pause that has not ended is none."""
        return []

    def snapshot(self) -> str:
        """Return everything as JSON."""
        self.dirty = False
        return dumps(_PausesSnapshot([(place, list(runs)) for place, runs in self._runs.items()], self.told.stored()))

    def changes(self) -> None:
        """Return None: it is little, and much of it changes."""

    def restore(self, text: str, *since: str) -> None:
        """Continue from a snapshot; there are no changes after it."""
        state = loads(text, _PausesSnapshot)
        self._runs = {place: Runs(self._gap, runs) for place, runs in state.runs}
        self.told = Emissions(state.told)

    def _place(self, match: Match, facts: Facts) -> PauseKey:
        values = tuple(word_value(match, label, word, facts.scope) for label, word in self._words)
        return (match.source_id if None in values else "", values)

    def _by_entity(self, facts: Facts) -> dict[Entity, Runs[Occurrence]]:
        found: dict[Entity, Runs[Occurrence]] = {}
        for (source_id, values), runs in sorted(self._runs.items(), key=lambda item: repr(item[0])):
            entity = bound_entity(self._words, values, source_id, facts)
            found.setdefault(entity, Runs(self._gap)).merge(runs)
        return found

    def _alert(self, key: AlertKey, pause: Ends[Occurrence]) -> Alert:
        """Return the alert of a pause; its count is 1, its captures are those of the matches at its two ends."""
        before, after = pause
        alert = Alert(key, "resolved", self._rule.severity, before.at, after.at, after.at, 1, True, why="seen again")
        return described(alert, tally((before, after)))
