"""Entities: the subjects of alerts, as pairs of label and value, and the group keys of each entity."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from typing import Generic, TypeVar

from engine.correlate.facts import Facts
from engine.model.matches import Match, Value
from engine.model.records import Labels

Entity = tuple[tuple[str, str], ...]
Key = TypeVar("Key", bound=Hashable)
ValuesKey = tuple[str, tuple[str | None, ...]]  # source ("" unless a value is missing), the entity's values by sorted label


def label_value(match: Match, label: str, name: str, scope: str) -> str | None:
    """Return the value of an entity's label: capture `name` of the match, else label `name` of its line; None if missing."""
    if label == "cluster":
        return scope
    value: Value | None = match.captures.get(name)
    if value is None or value == "":
        value = match.labels.get(name)
    return None if value is None or value == "" else str(value)


def values_key(match: Match, names: Iterable[tuple[str, str]], scope: str) -> ValuesKey:
    """Return the key of the entity that `match` is about, as far as the match names it.

    Args:
        names: pairs of a label and the capture or label that its value is read from, sorted.
    """
    values = tuple(label_value(match, label, name, scope) for label, name in names)
    return (match.source_id if None in values else "", values)


def bound_entity(names: Iterable[tuple[str, str]], values: Iterable[str | None], source_id: str, facts: Facts) -> Entity:
    """Return the entity with these `values`.

    A missing value is replaced by the member that the source is bound to, or, if it is bound to none, by `?` and the source.
    """
    bound = facts.bindings.value
    pairs = zip(names, values, strict=True)
    return tuple((label, value or bound(source_id, name) or f"?{source_id}") for (label, name), value in pairs)


def entity_labels(entity: Entity) -> Labels:
    """Return the entity as labels, without placeholders for missing values."""
    return {label: value for label, value in entity if not value.startswith("?")}


class EntityIndex(Generic[Key]):
    """Maps every group key to its entity, and every entity to its keys."""

    def __init__(self) -> None:
        self._entity_of: dict[Key, Entity] = {}
        self._keys_of: dict[Entity, set[Key]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._entity_of

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entity_of)

    def entity(self, key: Key) -> Entity:
        """Return the entity of `key`. Raises KeyError for a key that is not bound."""
        return self._entity_of[key]

    def keys(self, entity: Entity) -> Set[Key]:
        """Return the keys of `entity`; none for an unknown entity."""
        return self._keys_of.get(entity, frozenset())

    def entities(self) -> Set[Entity]:
        """Return every entity that has a key."""
        return self._keys_of.keys()

    def bind(self, key: Key, entity: Entity) -> None:
        """Add a key that is not bound yet."""
        self._entity_of[key] = entity
        self._keys_of.setdefault(entity, set()).add(key)

    def unbind(self, key: Key) -> Entity:
        """Remove a key; return its entity. Raises KeyError for a key that is not bound."""
        entity = self._entity_of.pop(key)
        keys = self._keys_of[entity]
        keys.discard(key)
        if not keys:
            del self._keys_of[entity]
        return entity
