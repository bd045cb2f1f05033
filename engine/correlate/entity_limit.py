"""Group keys, and which entities of a rule are kept apart when there are very many (engine/correlate/crowd.py).

Entities that are not kept apart share one alert if one match is enough for the rule. For other rules they are not evaluated, as
it is not stored which entity their matches belong to. Both are reported as not evaluated.
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
from engine.model.words import worded

MOST_ENTITIES = 5000  # of one rule in one scope
MOST_PLACES = 20_000  # group keys of all these entities, and of entities with signals of an end
MOST_OF_ONE = 1000  # group keys of one entity: values that are counted, and sources where versions matter
_LASTING_S = 86_400.0  # an alert that no signal ends is over after a day without matches

EntityName = tuple[tuple[str | None, ...], str]


class GroupKey(Struct, frozen=True, array_like=True, gc=False):
    """The key of a match in the state of a rule.

    Attributes:
        source_id: the source, if the verdict may depend on it (a missing value, a rule for some versions, a speaker); else "".
        dated: whether the match has a time stamp.
        values: the entity's values by sorted label, None where missing.
        value: the value by which matches are kept apart (see Measure).
    """

    rule_id: str
    source_id: str
    dated: bool
    values: tuple[str | None, ...]
    value: str = ""

    @property
    def name(self) -> EntityName:
        """The entity, as far as the match names it."""
        return self.values, self.source_id if None in self.values else ""


class Borders(Struct, frozen=True):
    """The stored state of an EntityLimit: the borders of the entities, of those with signals, and of the keys of one entity."""

    entities: Border = Border()
    signs: Border = Border()
    of_one: list[tuple[EntityName, Border]] = field(default_factory=list)


class EntityLimit:
    """Decides which entities of one rule are kept apart, from the set of their keys alone.

    Signals of an end have a limit of their own, so that entities without trouble do not displace those with trouble.

    Args:
        counted: the rules whose matches are counted; all others are signals.
    """

    def __init__(self, counted: Container[str], borders: Borders = Borders()) -> None:  # noqa: B008 - frozen
        self._counted = counted
        self._entities: Crowd[EntityName] = Crowd(MOST_ENTITIES, MOST_PLACES, borders.entities)
        self._signals: Crowd[EntityName] = Crowd(MOST_PLACES, None, borders.signs)
        self._of_one = {name: Crowd[GroupKey](MOST_OF_ONE, None, border) for name, border in borders.of_one}
        self._keys: dict[EntityName, set[GroupKey]] = {}

    @property
    def borders(self) -> Borders:
        """The borders to store; a limit with these borders continues."""
        crowded = [(name, crowd.border) for name, crowd in self._of_one.items() if crowd.border.digest is not None]
        return Borders(self._entities.border, self._signals.border, crowded)

    @borders.setter
    def borders(self, borders: Borders) -> None:
        self._entities.border, self._signals.border = borders.entities, borders.signs
        for name, border in borders.of_one:
            self._of_one[name].border = border

    def admits(self, key: GroupKey, tick: datetime | None) -> bool:
        """Return whether a key may be kept apart by the present borders."""
        of_one = self._of_one.get(key.name)
        return self._crowd(key).admits(key.name, tick) and (of_one is None or of_one.admits(key, tick))

    def take(self, key: GroupKey, tick: datetime | None) -> list[GroupKey]:
        """Add a key that is admitted; return the keys that have to leave for it, perhaps itself."""
        name = key.name
        keys = self._keys.setdefault(name, set())
        keys.add(key)
        leaving = self._leaving_of_one(name, keys, key, tick)
        for left in leaving:
            keys.discard(left)
            if left != key:
                self._crowd(left).give(name)
        if key in keys:
            crowd = self._crowd(key)
            displaced = [left for other in crowd.take(name, tick) for left in self._keys[other] if self._crowd(left) is crowd]
            for left in displaced:
                self._remove(left)
            leaving += displaced
        return leaving

    def leave(self, key: GroupKey) -> None:
        """Remove a key whose matches are dropped."""
        self._crowd(key).give(key.name)
        self._remove(key)

    def rest(self, tick: datetime, within: timedelta) -> None:
        """Keep all entities apart again where none was left out for `within`."""
        self._entities.rest(tick, within)
        self._signals.rest(tick, within)
        for crowd in self._of_one.values():
            crowd.rest(tick, within)

    @property
    def beyond(self) -> int:
        """About how many entities are not kept apart."""
        return self._entities.beyond

    def sentences(self, together: bool) -> Iterator[str]:
        """Yield sentences about the entities that are not evaluated exactly.

        Args:
            together: whether the entities that are left out share one alert.
        """
        if self.beyond:
            then = "told together" if together else "not judged"
            yield f"more than {len(self._entities):,} entities: about {self.beyond:,} others are not kept apart and {then}"
        if self._signals.beyond:
            yield (
                f"signs of the end of more than {len(self._signals):,} entities:"
                f" of about {self._signals.beyond:,} none are kept"
            )
        crowded = [crowd for crowd in self._of_one.values() if crowd.beyond]
        if crowded:
            yield f"more than {MOST_OF_ONE:,} values of {len(crowded):,} entities: further ones are not counted"

    def _crowd(self, key: GroupKey) -> Crowd[EntityName]:
        return self._entities if key.rule_id in self._counted else self._signals

    def _leaving_of_one(self, name: EntityName, keys: set[GroupKey], key: GroupKey, tick: datetime | None) -> list[GroupKey]:
        """Return the keys of one entity that have to leave, as it has too many."""
        crowd = self._of_one.get(name)
        if crowd is not None:
            return crowd.take(key, tick)
        if len(keys) <= MOST_OF_ONE:
            return []
        crowd = self._of_one[name] = Crowd(MOST_OF_ONE)
        return [leaving for member in keys for leaving in crowd.take(member, tick)]

    def _remove(self, key: GroupKey) -> None:
        keys = self._keys[key.name]
        keys.discard(key)
        if key.name in self._of_one:
            self._of_one[key.name].give(key)
        if not keys:
            del self._keys[key.name]


def is_of_others(entity: Entity) -> bool:
    """Return whether `entity` represents the entities beyond the limit, which share one alert."""
    return any(value == OTHERS for _, value in entity)


def of_others(labels: Iterable[str], key: GroupKey) -> GroupKey:
    """Return the key that the matches of `key` get when its entity is beyond the limit.

    Args:
        labels: the names of the labels that `key.values` holds, in the same order.
    """
    values = tuple(value if label == "cluster" else None for label, value in zip(labels, key.values, strict=True))
    return GroupKey(key.rule_id, OTHERS.removeprefix("?"), key.dated, values)


def entity_of_others(labels: Iterable[str], key: GroupKey) -> Entity:
    """Return the entity that represents the entities beyond the limit; see `of_others`."""
    return tuple((label, value or OTHERS) for label, value in zip(labels, key.values, strict=True))


def rule_of_others(rule: Rule) -> Rule:
    """Return `rule` for entities that share one alert: no count escalates it, and no signal of one entity ends it."""
    clear = Clear(0, rule.clear.in_s if rule.clear.in_s > 0 else _LASTING_S)
    return replace(rule, escalate=(), clear=clear)


def aggregated(alert: Alert, rule: Rule, beyond: int) -> Alert:
    """Return the alert that entities share: without captures that name one of them, and with their number in `why`."""
    named = {*rule.entity, *rule.entity.values()}
    captures = {name: capture for name, capture in alert.captures.items() if name not in named}
    numbers = {"number": beyond, "most": MOST_ENTITIES}
    why = worded("about {number:,} entities together: more than {most:,} of one rule are not kept apart", **numbers)
    return replace(alert, captures=captures, why=worded("{why}; {further}", why=why, further=alert.why) if alert.why else why)
