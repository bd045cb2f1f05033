"""Where the matches of a rule are kept, and which of very many places are kept apart (engine/correlate/crowd.py).

What is left out of a rule that one match is enough for is told together, as an entity of its own. Of other rules it is not
judged, for nobody knows any more whose matches they are. Either is said.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from engine.correlate.crowd import Border, Crowd
from engine.correlate.entities import Entity
from engine.model.incidents import OTHERS, Alert
from engine.model.rules import Clear, Rule

MOST_ENTITIES = 5000  # of one rule in one scope
MOST_PLACES = 20_000  # of these entities together, and of signs that something is over
MOST_OF_ONE = 1000  # places of one entity: values that are counted, and sources where versions matter
_LASTING_S = 86_400.0  # what no sign ends is over after a day without any

EntityName = tuple[tuple[str | None, ...], str]


class GroupKey(Struct, frozen=True, array_like=True):
    """Where a match is kept: `values` are its entity's, by sorted label, None where missing. `source_id` is set only where the
    answer may depend on it: for a missing value, or a rule of some versions. `value`: see Measure."""

    rule_id: str
    source_id: str
    dated: bool
    values: tuple[str | None, ...]
    value: str = ""

    @property
    def name(self) -> EntityName:
        """Whom it is about, as far as the match says."""
        return self.values, self.source_id if None in self.values else ""


class Borders(Struct, frozen=True):
    """What is stored of an Apart: what is left out, of the entities, of those with signs of an end, of one entity."""

    entities: Border = Border()
    signs: Border = Border()
    of_one: list[tuple[EntityName, Border]] = field(default_factory=list)


class EntityLimit:
    """The places of one rule that are kept apart: the set of those that it was told of decides. Signs that something is over
    have bounds of their own, so that entities without trouble do not push out those with."""

    def __init__(self, counted: Container[str], borders: Borders = Borders()) -> None:  # noqa: B008 - frozen
        self._counted = counted
        self._entities: Crowd[EntityName] = Crowd(MOST_ENTITIES, MOST_PLACES, borders.entities)
        self._signs: Crowd[EntityName] = Crowd(MOST_PLACES, None, borders.signs)
        self._of_one = {name: Crowd[GroupKey](MOST_OF_ONE, None, border) for name, border in borders.of_one}
        self._places: dict[EntityName, set[GroupKey]] = {}

    @property
    def borders(self) -> Borders:
        """What another one goes on with."""
        crowded = [(name, crowd.border) for name, crowd in self._of_one.items() if crowd.border.digest is not None]
        return Borders(self._entities.border, self._signs.border, crowded)

    @borders.setter
    def borders(self, borders: Borders) -> None:
        self._entities.border, self._signs.border = borders.entities, borders.signs
        for name, border in borders.of_one:
            self._of_one[name].border = border

    def admits(self, place: GroupKey, tick: datetime | None) -> bool:
        """Return whether a place is kept apart, as far as is known by now."""
        of_one = self._of_one.get(place.name)
        return self._crowd(place).admits(place.name, tick) and (of_one is None or of_one.admits(place, tick))

    def take(self, place: GroupKey, tick: datetime | None) -> list[GroupKey]:
        """Take a place that is admitted; return those that have to leave for it, perhaps itself."""
        name = place.name
        places = self._places.setdefault(name, set())
        places.add(place)
        gone = self._too_many_of(name, places, place, tick)
        for each in gone:
            places.discard(each)
            if each != place:
                self._crowd(each).give(name)
        if place in places:
            crowd = self._crowd(place)
            left = [each for other in crowd.take(name, tick) for each in self._places[other] if self._crowd(each) is crowd]
            for each in left:
                self._remove(each)
            gone += left
        return gone

    def leave(self, place: GroupKey) -> None:
        """Forget a place: nothing was heard of it for long."""
        self._crowd(place).give(place.name)
        self._remove(place)

    def rest(self, tick: datetime, within: timedelta) -> None:
        """Keep everything apart again where nothing was left out for so long."""
        self._entities.rest(tick, within)
        self._signs.rest(tick, within)
        for crowd in self._of_one.values():
            crowd.rest(tick, within)

    @property
    def beyond(self) -> int:
        """About how many entities are not kept apart."""
        return self._entities.beyond

    def sentences(self, together: bool) -> Iterator[str]:
        """Yield what is not as exact as it was; `together`: what is left out is told together."""
        if self.beyond:
            then = "told together" if together else "not judged"
            yield f"more than {len(self._entities):,} entities: about {self.beyond:,} others are not kept apart and {then}"
        if self._signs.beyond:
            yield f"signs of the end of more than {len(self._signs):,} entities: of about {self._signs.beyond:,} none are kept"
        crowded = [crowd for crowd in self._of_one.values() if crowd.beyond]
        if crowded:
            yield f"more than {MOST_OF_ONE:,} values of {len(crowded):,} entities: further ones are not counted"

    def _crowd(self, place: GroupKey) -> Crowd[EntityName]:
        return self._entities if place.rule_id in self._counted else self._signs

    def _too_many_of(self, name: EntityName, places: set[GroupKey], place: GroupKey, tick: datetime | None) -> list[GroupKey]:
        crowd = self._of_one.get(name)
        if crowd is not None:
            return crowd.take(place, tick)
        if len(places) <= MOST_OF_ONE:
            return []
        crowd = self._of_one[name] = Crowd(MOST_OF_ONE)
        return [gone for each in places for gone in crowd.take(each, tick)]

    def _remove(self, place: GroupKey) -> None:
        places = self._places[place.name]
        places.discard(place)
        if place.name in self._of_one:
            self._of_one[place.name].give(place)
        if not places:
            del self._places[place.name]


def is_of_others(entity: Entity) -> bool:
    """Return whether `entity` stands for all that are not kept apart."""
    return any(value == OTHERS for _, value in entity)


def of_others(labels: Iterable[str], place: GroupKey) -> GroupKey:
    """Return where the matches of `place`, whose values are those of `labels`, are kept when it is not kept apart."""
    values = tuple(value if label == "cluster" else None for label, value in zip(labels, place.values, strict=True))
    return GroupKey(place.rule_id, OTHERS.removeprefix("?"), place.dated, values)


def entity_of_others(labels: Iterable[str], place: GroupKey) -> Entity:
    """Return the entity that stands for all that are not kept apart."""
    return tuple((label, value or OTHERS) for label, value in zip(labels, place.values, strict=True))


def rule_of_others(rule: Rule) -> Rule:
    """Return `rule` as it is for what is told together: no count makes it worse, and no sign of one of them ends it."""
    clear = Clear(0, rule.clear.in_s if rule.clear.in_s > 0 else _LASTING_S)
    return replace(rule, escalate=(), clear=clear)


def aggregated(alert: Alert, rule: Rule, beyond: int) -> Alert:
    """Return the alert of what is not kept apart: it names nobody, and says how many they are."""
    named = {*rule.entity, *rule.entity.values()}
    captures = {name: capture for name, capture in alert.captures.items() if name not in named}
    why = f"about {beyond:,} entities together: more than {MOST_ENTITIES:,} of one rule are not kept apart"
    return replace(alert, captures=captures, why=f"{why}; {alert.why}" if alert.why else why)
