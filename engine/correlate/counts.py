"""The logic of counting: series of matches by entity, re-evaluated into alerts when something was added or time has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from engine.codec import dumps, loads
from engine.correlate.aggregate import Occurrence, occurrence
from engine.correlate.alerts import alert_of
from engine.correlate.entity_limit import (
    Borders,
    EntityLimit,
    GroupKey,
    entity_of_others,
    is_of_others,
    of_others,
    rule_of_others,
    told_together,
)
from engine.correlate.entries import Entry, EntryKind, Part, entries, newest, placed
from engine.correlate.episodes import Episode, Signal, episodes
from engine.correlate.logic import Emissions, Entity, Facts, RuleNotEvaluated, bound_entity, word_value
from engine.correlate.measure import Counted, Measure
from engine.correlate.series import Series
from engine.correlate.speakers import ANYBODY, Speakers, Voices, printers
from engine.correlate.version_filter import VersionFilter
from engine.model.configs import Setting, settings_of
from engine.model.incidents import Alert, Verdict
from engine.model.matches import Match
from engine.model.rules import Rule
from engine.quarantine import attempt

FORGOTTEN_AFTER = timedelta(hours=24)
_SWEPT_EVERY = timedelta(hours=1)
_in_time = attrgetter("at", "first")


class _SeriesRow(Struct, frozen=True):
    place: GroupKey
    entity: Entity
    series: Series


class _CountsSnapshot(Struct, frozen=True):
    rows: list[_SeriesRow] = field(default_factory=list)
    told: list[tuple[Entity, str]] = field(default_factory=list)
    due: list[tuple[Entity, datetime | None]] = field(default_factory=list)
    final_before: datetime | None = None
    swept: datetime | None = None
    bindings_seen: int = -1
    watermark_seen: datetime | None = None
    borders: Borders = Borders()


class _Added(Struct, frozen=True, array_like=True):
    """What came for a place, in the order in which it came; `touched`: see Series."""

    place: GroupKey
    entity: Entity
    touched: datetime | None
    occurrences: list[Occurrence]


class _CountsDelta(Struct, frozen=True):
    """`due`: of entities whose last episode goes on; `over`: of which that is no longer so."""

    added: list[_Added]
    told: list[tuple[Entity, str]]
    due: list[tuple[Entity, datetime | None]]
    over: list[Entity]
    watermark_seen: datetime | None
    borders: Borders = Borders()


class _EvaluatedEpisode(Struct, frozen=True):
    """An episode and its alert. Once it is over that is the same as long as the episode is: whatever is in it is not changed in
    place."""

    episode: Episode
    dated: bool
    alert: Alert | None


class Counts:
    """Measures occurrences by entity (see Logic). Signals of the rule's `clear` are kept beside them."""

    follows_clocks = False
    full = False

    def __init__(self, rule: Rule, counted: Sequence[Counted], measure: Measure, speakers: Speakers = ANYBODY) -> None:
        self.rule_id = rule.id
        self._rule = rule
        self._counted = {each.rule_id: each for each in counted}
        self.listens = frozenset((*self._counted, *rule.clear.rules))
        self._measure = measure
        self._forgotten_after = max(FORGOTTEN_AFTER, measure.opening.timespan)
        self._words = sorted(rule.entity.items())
        self._labels = [label for label, _ in self._words]
        self._versions = VersionFilter(rule, self._counted)
        self._voices = Voices.of(rule, speakers)
        self.dirty = False
        self._series: dict[GroupKey, Series] = {}
        self._entity_of: dict[GroupKey, Entity] = {}
        self._places: dict[Entity, set[GroupKey]] = {}
        self.told = Emissions()
        self._over: dict[Entity, Mapping[datetime, _EvaluatedEpisode]] = {}  # by when it began to hold
        self._due: dict[Entity, datetime | None] = {}  # entities whose last episode goes on
        self._is_kept = False  # whether its state is stored now and then
        self._added: dict[GroupKey, list[Occurrence]] = {}  # since that was done
        self._due_moved: set[Entity] = set()
        self._rewritten = False  # whether more has changed since then than what was added, told and due
        self._final_before: datetime | None = None
        self._swept: datetime | None = None
        self._apart = EntityLimit(self._counted)
        self._asked: set[Entity] = set()
        self._bindings_seen = -1
        self._complete_seen: datetime | None = None

    @cached_property
    def _rule_of_others(self) -> Rule:
        return rule_of_others(self._rule)

    @cached_property
    def _settings(self) -> frozenset[Setting]:
        return settings_of(self._rule)

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match; one of a counted rule that lacks what is measured says nothing."""
        if match.rule_id in self._counted and not self._measure.takes(match):
            return
        place, tick = self._place(match, facts.scope), facts.clocks.tick
        if place not in self._series and not self._take(place, self._entity(place, facts), tick):
            self.dirty = True
            if not self._is_told_together(place):
                return
            place = self._others(place)
        series = self._series[place]
        series.touched = tick
        self.dirty = True
        one = occurrence(match)
        is_new = series.add(one)
        if self._is_kept:
            self._added.setdefault(place, []).extend([one] if is_new else ())
        if is_new:
            self._asked.add(self._entity_of[place])

    def _take(self, place: GroupKey, entity: Entity, tick: datetime | None) -> bool:
        """Make room for a new place; return whether it is kept apart."""
        self._sweep(tick)
        if not self._apart.admits(place, tick):
            return False
        self._series[place] = self._empty(place.rule_id)
        self._keep(place, entity)
        self._leave_out(self._apart.take(place, tick))
        return place in self._series

    def _leave_out(self, places: Iterable[GroupKey]) -> None:
        """Keep places no longer apart: there are too many."""
        for place in places:
            entity, series = self._entity_of[place], self._series[place]
            self._drop(place)
            self._asked.add(entity)
            self._rewritten = True
            if self._is_told_together(place):
                others = self._others(place)
                self._series[others].absorb(series)
                self._asked.add(self._entity_of[others])

    def _is_told_together(self, place: GroupKey) -> bool:
        return self._measure.single and place.rule_id in self._counted

    def _others(self, place: GroupKey) -> GroupKey:
        """Return where the matches of `place` are kept, which is not kept apart."""
        others = of_others(self._labels, place)
        if others not in self._series:
            self._series[others] = self._empty(others.rule_id)
            self._keep(others, entity_of_others(self._labels, others))
        return others

    def _drop(self, place: GroupKey) -> None:
        entity = self._entity_of.pop(place)
        del self._series[place]
        self._versions.forget(place)
        self._places[entity].discard(place)
        if not self._places[entity]:
            del self._places[entity]
            self._over.pop(entity, None)

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Take a match back."""
        place = self._place(match, facts.scope)
        if place not in self._series and self._is_told_together(place) and of_others(self._labels, place) in self._series:
            place = of_others(self._labels, place)
        if place in self._series and self._series[place].retract(match.event_id):
            self._asked.add(self._entity_of[place])
            self.dirty = self._rewritten = True

    def on_progress(self, facts: Facts) -> None:
        """Take note of new bindings, and of ends that have come."""
        if facts.bindings.revision != self._bindings_seen:
            self._bindings_seen = facts.bindings.revision
            self._rebind(facts)
        watermark = facts.clocks.watermark()
        if watermark is not None:
            self._asked |= {entity for entity, due in self._due.items() if due is not None and due <= watermark}
            if self._complete_seen is not None and watermark < self._complete_seen:
                self._asked |= self._places.keys()  # a source turned up that is further back: ends may have been premature
            self._complete_seen = watermark
        self._sweep(facts.clocks.tick)

    def next_deadline(self) -> datetime | None:
        """Return when the first episode may be over."""
        return min((due for due in self._due.values() if due is not None), default=None)

    def findings(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of the entities whose alerts have changed."""
        for entity in sorted(self._asked):
            said = ", ".join(f"{label}={value}" for label, value in entity)
            alerts = attempt(facts.quarantine, "correlate", said, self._alerts, entity, facts, rule_id=self.rule_id)
            if alerts is None:
                self._give_up(entity)
                continue
            if not self.told.is_news(entity, alerts, facts):
                continue
            self.dirty = True
            yield Verdict((facts.scope, self.rule_id, entity), alerts, self._final_before)
        self._asked = set()

    def unjudged(self, facts: Facts) -> list[RuleNotEvaluated]:
        """Return the rules left out for their versions, and what is not kept apart."""
        not_apart = [(self.rule_id, sentence) for sentence in self._apart.sentences(self._measure.single)]
        return [*self._versions.unjudged(), *not_apart]

    def snapshot(self) -> str:
        """Return everything as JSON."""
        self._is_stored()
        rows = [_SeriesRow(place, self._entity_of[place], series) for place, series in self._series.items()]
        return dumps(
            _CountsSnapshot(
                rows,
                told=self.told.stored(),
                due=list(self._due.items()),
                final_before=self._final_before,
                swept=self._swept,
                bindings_seen=self._bindings_seen,
                watermark_seen=self._complete_seen,
                borders=self._apart.borders,
            )
        )

    def changes(self) -> str | None:
        """Return as JSON what has come since the state was stored; None when that is not all that has changed."""
        if self._rewritten:
            return None
        added = [_Added(place, self._entity_of[place], self._series[place].touched, a) for place, a in self._added.items()]
        moved = sorted(self._due_moved)
        due = [(entity, self._due[entity]) for entity in moved if entity in self._due]
        over = [entity for entity in moved if entity not in self._due]
        self._is_stored()
        return dumps(_CountsDelta(added, self.told.changes(), due, over, self._complete_seen, self._apart.borders))

    def restore(self, text: str, *since: str) -> None:
        """Continue from a snapshot and the changes after it."""
        state = loads(text, _CountsSnapshot)
        self._apart = EntityLimit(self._counted, state.borders)
        self._bindings_seen, self._complete_seen = state.bindings_seen, state.watermark_seen
        for row in state.rows:
            self._series[row.place] = row.series
            self._keep(row.place, row.entity)
        for row in state.rows:
            if not is_of_others(row.entity):
                self._leave_out(self._apart.take(row.place, row.series.touched))
        self.told, self._due = Emissions(state.told), dict(state.due)
        self._final_before, self._swept = state.final_before, state.swept
        for changes in since:
            self._go_on(loads(changes, _CountsDelta))
        self._is_stored()

    def _go_on(self, changes: _CountsDelta) -> None:
        for place, entity, touched, occurrences in map(astuple, changes.added):
            if is_of_others(entity):
                self._others(place)
            elif place not in self._series and not self._take(place, entity, touched):
                continue
            series = self._series[place]
            series.touched = touched
            for each in occurrences:
                series.add(each)
            series.fold()  # as it was when it was asked for
        self.told.restore(changes.told)
        self._due.update(changes.due)
        for entity in changes.over:
            self._due.pop(entity, None)
        self._complete_seen = changes.watermark_seen
        self._apart.borders = changes.borders

    def _is_stored(self) -> None:
        self.dirty = self._rewritten = False
        self._is_kept, self._added = True, {}
        self._due_moved = set()

    def _empty(self, rule_id: str) -> Series:
        counted = self._counted.get(rule_id)
        return Series(counted.distinct if counted else (), counted is not None and self._measure.timed)

    def _place(self, match: Match, scope: str) -> GroupKey:
        values = tuple(word_value(match, label, word, scope) for label, word in self._words)
        by_source = None in values or match.rule_id in self._versions.rule_ids or self._voices.asked(match.rule_id)
        value = self._measure.value(match) if match.rule_id in self._counted else ""
        return GroupKey(match.rule_id, match.source_id if by_source else "", match.dated, values, value)

    def _keep(self, place: GroupKey, entity: Entity) -> None:
        self._entity_of[place] = entity
        self._places.setdefault(entity, set()).add(place)

    def _entity(self, place: GroupKey, facts: Facts) -> Entity:
        return bound_entity(self._words, place.values, place.source_id, facts)

    def _rebind(self, facts: Facts) -> None:
        """Find the entity of every place anew, and ask again for those whose sources may have become known."""
        before, self._rewritten = self._entity_of, True
        self._entity_of, self._places, self._over = {}, {}, {}
        for place in self._series:
            self._keep(place, before[place] if is_of_others(before[place]) else self._entity(place, facts))
            if place.source_id or self._settings:
                self._asked |= {self._entity_of[place], before[place]}

    def _alerts(self, entity: Entity, facts: Facts) -> tuple[Alert, ...]:
        counted, signals = self._inputs(entity, facts)
        watermark = facts.clocks.watermark()
        together = is_of_others(entity)
        rule = self._rule_of_others if together else self._rule
        found = episodes(counted, signals, self._measure.opening, rule.clear, watermark)
        self._note_due(entity, found, watermark)
        dated = any(place.dated for place in self._places.get(entity, ()) if place.rule_id in self._counted)
        key = (facts.scope, self.rule_id, entity)
        over = self._over.get(entity, {})
        made = [
            each
            if (each := over.get(episode.since)) is not None and each.episode == episode and each.dated == dated
            else _EvaluatedEpisode(episode, dated, alert_of(key, rule, episode, watermark, dated))
            for episode in found
        ]
        if self._places.get(entity):
            self._over[entity] = {each.episode.since: each for each in made if each.episode.ending is not None}
        alerts = tuple(each.alert for each in made if each.alert is not None)
        if together:
            return tuple(told_together(alert, rule, self._apart.beyond) for alert in alerts)
        alerts = tuple(self._with_settings(alert, facts) for alert in alerts)
        return tuple(replace(alert, hearsay=True) for alert in alerts) if self._is_hearsay(entity, facts) else alerts

    def _with_settings(self, alert: Alert, facts: Facts) -> Alert:
        settings = facts.bindings.settings(alert, self._settings) if self._settings else {}
        return replace(alert, settings=settings) if settings else alert

    def _inputs(self, entity: Entity, facts: Facts) -> tuple[list[Entry], list[Signal]]:
        """Return what is counted for `entity`, and the signals of its end, both in order of time."""
        dated: dict[EntryKind, list[Part]] = {}
        undated: dict[EntryKind, list[Part]] = {}
        for place in self._heard_places(entity, facts):
            by_kind = dated if place.dated else undated
            by_kind.setdefault((place.rule_id, place.value), []).extend(self._applicable(place, facts))
        of_dated = [part for parts in dated.values() for part in parts]
        last = newest(of_dated) if undated else None
        counted: list[Entry] = []
        for kind in sorted({**dated, **undated}):
            parts = [*dated.get(kind, ()), *placed(undated.get(kind, ()), last)]
            of = self._counted[kind[0]]
            collapse_s = 0.0 if is_of_others(entity) else of.collapse_s  # what is alike of two entities is two things
            counted += entries(parts, collapse_s, *kind, distinct=of.distinct)
        counted.sort(key=_in_time)
        return counted, self._signals(entity, of_dated, facts)

    def _heard_places(self, entity: Entity, facts: Facts) -> list[GroupKey]:
        """Return the places of what is counted; where somebody who may say it says so, without what others only repeat."""
        places = [p for p in sorted(self._places.get(entity, ()), key=repr) if p.rule_id in self._counted]
        return [p for p in places if self._voices.may_speak(p.rule_id, p.source_id, entity, facts)] or places

    def _is_hearsay(self, entity: Entity, facts: Facts) -> bool:
        """Return whether nobody who may say what this rule says of `entity` did."""
        return self._voices.asked(self.rule_id) and not any(
            self._voices.may_speak(p.rule_id, p.source_id, entity, facts) for p in self._heard_places(entity, facts)
        )

    def _signals(self, entity: Entity, counted: Iterable[Part], facts: Facts) -> list[Signal]:
        """Return when it was said that it is over, by those who may say so or print the trouble themselves."""
        places = [p for p in self._places.get(entity, ()) if p.dated and p.rule_id in self._rule.clear.rules and not p.value]
        own = printers(counted) if any(self._voices.asked(p.rule_id) for p in places) else ()
        found = []
        for place in places:
            if place.source_id in own or self._voices.may_speak(place.rule_id, place.source_id, entity, facts):
                parts = self._voices.vouched(self._applicable(place, facts), place.source_id, facts)
                found += [(at, place.rule_id) for part in parts if (at := newest((part,))) is not None]
        return sorted(found)

    def _applicable(self, place: GroupKey, facts: Facts) -> list[Part]:
        """Return what is kept at `place`, without matches of versions that its rule is not for."""
        return self._versions.applicable(place, list(self._series[place].parts()), facts)

    def _note_due(self, entity: Entity, found: Sequence[Episode], watermark: datetime | None) -> None:
        """Remember when the last episode of `entity` has to be looked at again though no match came."""
        self._due_moved.add(entity)
        self._due.pop(entity, None)
        if not found or found[-1].ending is not None:
            return
        held = found[-1].since + timedelta(seconds=self._rule.for_s)
        waits = [when for when in (held, found[-1].due) if when and (watermark is None or when > watermark)]
        self._due[entity] = min(waits, default=None)

    def _sweep(self, tick: datetime | None) -> None:
        """Forget entities whose trouble is over and that nothing was heard of for a day of ticks, or for as long as the rule
        looks back; their alerts are final."""
        if tick is None or (self._swept is not None and tick - self._swept < _SWEPT_EVERY):
            return
        self._swept, self.dirty, self._rewritten = tick, True, True
        for entity, places in list(self._places.items()):
            for place in places:
                self._series[place].touched = self._series[place].touched or tick
            idle = all(tick - (self._series[place].touched or tick) >= self._forgotten_after for place in places)
            if idle and entity not in self._due and entity not in self._asked:
                self._forget(entity, set(places))
        self._apart.rest(tick, self._forgotten_after)

    def _give_up(self, entity: Entity) -> None:
        """Forget what cannot be judged, or it could not be ever after; what was said of it before stands."""
        for place in self._places.pop(entity, set()):
            del self._series[place], self._entity_of[place]
            self._versions.forget(place)
            self._added.pop(place, None)
        self._over.pop(entity, None)
        self._due.pop(entity, None)
        self.dirty = self._rewritten = True

    def _forget(self, entity: Entity, places: set[GroupKey]) -> None:
        last = newest(part for place in places for part in self._series[place].parts())
        if last is not None:
            self._final_before = max(self._final_before or last, last + timedelta(microseconds=1))
        for place in places:
            self._drop(place)
            if not is_of_others(entity):
                self._apart.leave(place)
        self.told.forget(entity)
