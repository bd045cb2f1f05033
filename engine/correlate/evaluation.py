"""Evaluation: from the matches of one entity to its alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.aggregate import Occurrence, total
from engine.correlate.alerts import alert_of
from engine.correlate.asked import ClusterWords, StateWord, is_about, may_be_about, words_of
from engine.correlate.entities import Entity
from engine.correlate.entity_limit import GroupKey, aggregated, is_of_others, rule_of_others
from engine.correlate.entries import Entry, EntryKind, Part, entries, newest, placed
from engine.correlate.episodes import Episode, Signal, episodes
from engine.correlate.facts import Facts
from engine.correlate.measure import Counted, Measure
from engine.correlate.series_table import SeriesTable
from engine.correlate.speakers import Voices, printers
from engine.model.configs import Setting, settings_of
from engine.model.incidents import Alert
from engine.model.rules import Rule

_by_time = attrgetter("at", "first")


class _EvaluatedEpisode(Struct, frozen=True):
    """An episode and its alert; None when there is none."""

    episode: Episode
    dated: bool
    alert: Alert | None


class Evaluation:
    """Evaluates the entities of one rule. It keeps nothing but the alerts of episodes that are over, to make them once."""

    def __init__(
        self, rule: Rule, counted: Mapping[str, Counted], measure: Measure, voices: Voices, table: SeriesTable
    ) -> None:
        self._rule, self._counted, self._measure = rule, counted, measure
        self._voices, self._table = voices, table
        self._over: dict[Entity, Mapping[datetime, _EvaluatedEpisode]] = {}  # by when the condition began to hold

    @cached_property
    def settings(self) -> frozenset[Setting]:
        """The settings that the rule's runbook mentions."""
        return settings_of(self._rule)

    @cached_property
    def _rule_of_others(self) -> Rule:
        return rule_of_others(self._rule)

    def forget(self, entity: Entity) -> None:
        """Drop the state of `entity`."""
        self._over.pop(entity, None)

    def evaluate(self, entity: Entity, facts: Facts) -> tuple[tuple[Alert, ...], Sequence[Episode]]:
        """Return the alerts of `entity` and the episodes they are made of, both in order of time; an episode may have none."""
        counted, signals, words = self._inputs(entity, facts)
        rule = self._rule_of_others if is_of_others(entity) else self._rule
        in_order = episodes(counted, signals, self._measure.opening, rule.clear, facts.clocks.watermark(), words)
        alerts = self._alerts(entity, rule, in_order, facts)
        if is_of_others(entity):
            return tuple(aggregated(alert, rule, self._table.limit.beyond) for alert in alerts), in_order
        alerts = [self._with_settings(alert, facts) for alert in alerts]
        if self._is_hearsay(entity, facts):
            alerts = [replace(alert, hearsay=True) for alert in alerts]
        return tuple(alerts), in_order

    def _alerts(self, entity: Entity, rule: Rule, in_order: Sequence[Episode], facts: Facts) -> list[Alert]:
        """Return the alerts of the episodes; an episode that was over before and has not changed keeps its alert."""
        keys = self._table.keys(entity)
        dated = any(key.dated for key in keys if key.rule_id in self._counted)
        alert_key = (facts.scope, self._rule.id, entity)
        watermark, earlier = facts.clocks.watermark(), self._over.get(entity, {})
        evaluated = []
        for episode in in_order:
            before = earlier.get(episode.since)
            if before is None or before.episode != episode or before.dated != dated:
                before = _EvaluatedEpisode(episode, dated, alert_of(alert_key, rule, episode, watermark, dated))
            evaluated.append(before)
        self.forget(entity)
        if keys:
            self._over[entity] = {item.episode.since: item for item in evaluated if item.episode.ending is not None}
        return [item.alert for item in evaluated if item.alert is not None]

    def _with_settings(self, alert: Alert, facts: Facts) -> Alert:
        settings = facts.bindings.settings(alert, self.settings) if self.settings else {}
        return replace(alert, settings=settings) if settings else alert

    def _inputs(self, entity: Entity, facts: Facts) -> tuple[list[Entry], list[Signal], ClusterWords]:
        """Return the counted parts of `entity` and the signals of its end, both in order of time, and what the cluster says."""
        dated: dict[EntryKind, list[Part]] = {}
        undated: dict[EntryKind, list[Part]] = {}
        for key in self._credible_keys(entity, facts):
            by_kind = dated if key.dated else undated
            by_kind.setdefault((key.rule_id, key.value), []).extend(self._table.parts(key, facts))
        dated_parts = [part for parts in dated.values() for part in parts]
        last = newest(dated_parts) if undated else None
        counted: list[Entry] = []
        for kind in sorted({**dated, **undated}):
            parts = [*dated.get(kind, ()), *placed(undated.get(kind, ()), last)]
            of_rule = self._counted[kind[0]]
            collapse_s = 0.0 if is_of_others(entity) else of_rule.collapse_s  # equal lines of two entities are two occurrences
            counted += entries(parts, collapse_s, *kind, distinct=of_rule.distinct)
        counted.sort(key=_by_time)
        return counted, *self._signs(entity, dated_parts, facts)

    def _credible_keys(self, entity: Entity, facts: Facts) -> list[GroupKey]:
        """Return the counted keys: those of sources that may speak for the entity, or all when none may."""
        keys = [key for key in sorted(self._table.keys(entity), key=repr) if key.rule_id in self._counted]
        return [key for key in keys if self._voices.may_speak(key.rule_id, key.source_id, entity, facts)] or keys

    def _is_hearsay(self, entity: Entity, facts: Facts) -> bool:
        """Return whether no source that may speak for `entity` printed a counted match."""
        return self._voices.asked(self._rule.id) and not any(
            self._voices.may_speak(key.rule_id, key.source_id, entity, facts) for key in self._credible_keys(entity, facts)
        )

    def _signs(self, entity: Entity, counted: Sequence[Part], facts: Facts) -> tuple[list[Signal], ClusterWords]:
        """Return the signals of an end in order of time, and what the cluster says, from sources that may speak for the entity
        or print its counted matches. An answer counts if it is about the entity, or what the counted lines named; one that
        only may be about them can put an end off, and not bring one about."""
        clear, asked = self._rule.clear, self._table.asked
        keys = [key for key in self._table.keys(entity) if key.dated and key.rule_id in clear.signs]
        keys = [key for key in keys if key.rule_id in asked or (key.rule_id in clear.rules and not key.value)]
        own = printers(counted) if any(self._voices.asked(key.rule_id) for key in keys) else ()
        named = _named(counted) if any(key.rule_id in asked for key in keys) else {}
        signals, words = list[Signal](), list[StateWord]()
        for key in sorted(keys, key=repr):
            is_answer = key.rule_id in asked
            if key.source_id not in own and not self._voices.may_speak(key.rule_id, key.source_id, entity, facts):
                continue
            if is_answer and not may_be_about(key.value, dict(entity), named):
                continue
            parts = self._voices.vouched(self._table.parts(key, facts), key.source_id, facts)
            times = [at for part in parts for at in ((part.at,) if isinstance(part, Occurrence) else (part.first, part.last))]
            ends = key.rule_id in clear.rules and (not is_answer or is_about(key.value, dict(entity), named))
            signals += [(at, key.rule_id) for at in times] if ends else []
            words += [StateWord(at, key.value, key.rule_id in clear.unless, ends) for at in times] if is_answer else []
        return sorted(signals), words_of(words)


def _named(counted: Sequence[Part]) -> Mapping[str, Sequence[str]]:
    """Return the values that matches captured, by name, as text."""
    if not counted:
        return {}
    captures = total({id(part): part for part in counted}.values()).captured()
    return {name: [str(value) for value in capture.values] for name, capture in captures.items()}
