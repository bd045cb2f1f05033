"""The matches of one rule, as one series for each group key, and which entities they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import datetime, timedelta

from msgspec import Struct, field

from engine.codec import loads
from engine.correlate.aggregate import Occurrence, occurrence
from engine.correlate.asked import NOBODY_ASKED, AskedRules, thing_of
from engine.correlate.entities import Entity, EntityIndex, bound_entity, label_value
from engine.correlate.entity_limit import Borders, EntityLimit, GroupKey, entity_of_others, is_of_others, of_others
from engine.correlate.entries import Part, newest
from engine.correlate.facts import Facts
from engine.correlate.measure import Counted, Measure
from engine.correlate.series import Series
from engine.correlate.state_filter import StateFilter
from engine.correlate.version_filter import VersionFilter
from engine.model.matches import Match
from engine.model.rules import Rule


class _SeriesRow(Struct, frozen=True):
    key: GroupKey
    entity: Entity
    series: Series


class _TableSnapshot(Struct, frozen=True):
    rows: list[_SeriesRow] = field(default_factory=list)
    borders: Borders = Borders()


class _AddedRow(Struct, frozen=True, array_like=True):
    """The occurrences added to one series, in the order in which they came; `touched`: see Series."""

    key: GroupKey
    entity: Entity
    touched: datetime | None
    occurrences: list[Occurrence]


class _TableDelta(Struct, frozen=True):
    rows: list[_AddedRow]
    borders: Borders = Borders()


class SeriesTable:
    """The series of one rule by group key (a state cell).

    Signals of the rule's `clear` are stored beside the counted matches. Of very many entities only some are kept apart; matches
    of the others are kept together where one match is enough for an alert, and else dropped (engine/correlate/entity_limit.py).

    Args:
        speakers: ids of the rules whose matches count only from some sources.
        asked: the rules of `clear` over answers of a cluster, whose matches are kept apart by what they are about.
    """

    def __init__(
        self,
        rule: Rule,
        counted: Mapping[str, Counted],
        measure: Measure,
        speakers: Iterable[str],
        asked: AskedRules = NOBODY_ASKED,
    ) -> None:
        self._counted, self._measure, self.asked = counted, measure, asked
        self._names = sorted(rule.entity.items())
        self._labels = [label for label, _ in self._names]
        self._versions = VersionFilter(rule, counted)
        self._states = StateFilter(rule, counted)
        self._by_source = self._versions.rule_ids | self._states.rule_ids | frozenset(speakers)
        self._series: dict[GroupKey, Series] = {}
        self._index: EntityIndex[GroupKey] = EntityIndex()
        self._limit = EntityLimit(counted)
        self.changed: set[Entity] = set()  # entities whose matches have changed since they were evaluated; the owner clears it
        self.dirty = False
        self._rewritten = False  # whether more has changed since the table was stored than what was added
        self._is_logged = False  # whether the table is stored at all: else what was added need not be recorded
        self._added: dict[GroupKey, list[Occurrence]] = {}

    @property
    def limit(self) -> EntityLimit:
        """The limit that decides which entities are kept apart."""
        return self._limit

    @property
    def versions(self) -> VersionFilter:
        """The filter that leaves out matches of versions the rule is not for."""
        return self._versions

    def __contains__(self, key: GroupKey) -> bool:
        return key in self._series

    def keys(self, entity: Entity) -> Set[GroupKey]:
        """Return the group keys of `entity`."""
        return self._index.keys(entity)

    def entities(self) -> Set[Entity]:
        """Return every entity that has matches."""
        return self._index.entities()

    def key_of(self, match: Match, scope: str) -> GroupKey:
        """Return the group key of `match`."""
        values = tuple(label_value(match, label, name, scope) for label, name in self._names)
        by_source = None in values or match.rule_id in self._by_source
        value = self._measure.value(match) if match.rule_id in self._counted else self._thing(match, scope)
        return GroupKey(match.rule_id, match.source_id if by_source else "", match.dated, values, value)

    def _thing(self, match: Match, scope: str) -> str:
        """Return what an answer is about; empty for other matches."""
        values = {label: label_value(match, label, name, scope) for label, name in self.asked.get(match.rule_id, {}).items()}
        return thing_of(values)

    def parts(self, key: GroupKey, facts: Facts) -> list[Part]:
        """Return the matches of `key`, without those of versions that the rule is not for, and of states that it leaves out."""
        return self._states.applicable(key, self._versions.applicable(key, list(self._series[key].parts()), facts), facts)

    def add(self, key: GroupKey, match: Match, facts: Facts) -> None:
        """Add a match; one that was added before changes nothing."""
        tick = facts.clocks.tick
        self.dirty = True
        if key not in self._series and not self._admit(key, self._entity(key, facts), tick):
            if not self._is_aggregated(key):
                return
            key = self._others(key)
        series, added = self._series[key], occurrence(match)
        series.touched = tick
        is_new = series.add(added)
        if self._is_logged:
            self._added.setdefault(key, []).extend([added] if is_new else ())
        if is_new:
            self.changed.add(self._index.entity(key))

    def retract(self, key: GroupKey, event_id: str) -> None:
        """Remove the match of one event, unless it is already part of a sum."""
        if key not in self._series and self._is_aggregated(key) and of_others(self._labels, key) in self._series:
            key = of_others(self._labels, key)
        if key in self._series and self._series[key].retract(event_id):
            self.changed.add(self._index.entity(key))
            self.dirty = self._rewritten = True

    def rebind(self, facts: Facts, of_all: bool) -> None:
        """Recompute the entity of every key, after the bindings have changed.

        Args:
            of_all: whether all entities are evaluated again, not only those of keys that depend on a source.
        """
        before, self._index = self._index, EntityIndex()
        self.dirty = self._rewritten = True
        for key in self._series:
            earlier = before.entity(key)
            self._index.bind(key, earlier if is_of_others(earlier) else self._entity(key, facts))
            if key.source_id or of_all:
                self.changed |= {self._index.entity(key), earlier}

    def idle(self, tick: datetime, idle_for: timedelta) -> list[Entity]:
        """Return the entities that nothing was added to for `idle_for`; without ticks until now, that time begins now."""
        self.dirty = self._rewritten = True
        entities = []
        for entity in self._index.entities():
            series = [self._series[key] for key in self._index.keys(entity)]
            for one_series in series:
                one_series.touched = one_series.touched or tick
            if all(tick - (one_series.touched or tick) >= idle_for for one_series in series):
                entities.append(entity)
        return entities

    def drop(self, entity: Entity) -> datetime | None:
        """Drop an entity and its matches; return the time of the last of them, None when there were none."""
        keys = set(self._index.keys(entity))
        last = newest(part for key in keys for part in self._series[key].parts())
        for key in keys:
            self._remove(key)
            if not is_of_others(entity):
                self._limit.leave(key)
        self.dirty = self._rewritten = True
        return last

    def stored(self) -> object:
        """Return every series with its key and entity, and the borders of the limit."""
        self._reset_log()
        rows = [_SeriesRow(key, self._index.entity(key), series) for key, series in self._series.items()]
        return _TableSnapshot(rows, self._limit.borders)

    def changes(self) -> object | None:
        """Return the added matches; None when any was removed or moved since."""
        if self._rewritten:
            return None
        rows = [_AddedRow(key, self._index.entity(key), self._series[key].touched, a) for key, a in self._added.items()]
        self._reset_log()
        return _TableDelta(rows, self._limit.borders)

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned; a limit that is lower now applies at once."""
        snapshot = loads(encoded, _TableSnapshot)
        self._limit = EntityLimit(self._counted, snapshot.borders)
        for row in snapshot.rows:
            self._series[row.key] = row.series
            self._index.bind(row.key, row.entity)
        for row in snapshot.rows:
            if not is_of_others(row.entity):
                self._leave_out(self._limit.take(row.key, row.series.touched))
        self._reset_log()

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        delta = loads(encoded, _TableDelta)
        for row in delta.rows:
            key = row.key
            if is_of_others(row.entity):
                self._others(key)
            elif key not in self._series and not self._admit(key, row.entity, row.touched):
                continue
            series = self._series[key]
            series.touched = row.touched
            for added in row.occurrences:
                series.add(added)
            series.fold()  # as it was after the evaluation
        self._limit.borders = delta.borders
        self._reset_log()

    def _reset_log(self) -> None:
        self.dirty = self._rewritten = False
        self._is_logged, self._added = True, {}

    def _admit(self, key: GroupKey, entity: Entity, tick: datetime | None) -> bool:
        """Make room for a new key; return whether it is kept apart."""
        if not self._limit.admits(key, tick):
            return False
        self._series[key] = self._empty(key.rule_id)
        self._index.bind(key, entity)
        self._leave_out(self._limit.take(key, tick))
        return key in self._series

    def _leave_out(self, keys: Iterable[GroupKey]) -> None:
        """Keep these keys apart no longer, as there are too many."""
        for key in keys:
            series = self._series[key]
            self.changed.add(self._remove(key))
            self._rewritten = True
            if self._is_aggregated(key):
                others = self._others(key)
                self._series[others].absorb(series)
                self.changed.add(self._index.entity(others))

    def _is_aggregated(self, key: GroupKey) -> bool:
        """Return whether matches of `key` are kept together with others when it is not kept apart."""
        return self._measure.single and key.rule_id in self._counted

    def _others(self, key: GroupKey) -> GroupKey:
        """Return the shared key of the matches of `key` that are not kept apart; it is added when it is first needed."""
        others = of_others(self._labels, key)
        if others not in self._series:
            self._series[others] = self._empty(others.rule_id)
            self._index.bind(others, entity_of_others(self._labels, others))
        return others

    def _remove(self, key: GroupKey) -> Entity:
        del self._series[key]
        self._added.pop(key, None)
        self._versions.forget(key)
        return self._index.unbind(key)

    def _empty(self, rule_id: str) -> Series:
        counted = self._counted.get(rule_id)
        return Series(counted.distinct if counted else (), counted is not None and self._measure.timed)

    def _entity(self, key: GroupKey, facts: Facts) -> Entity:
        return bound_entity(self._names, key.values, key.source_id, facts)
