"""Timers: the watermark at which an entity has to be evaluated again although no match came."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from engine.codec import loads
from engine.correlate.entities import Entity


class _TimersDelta(Struct, frozen=True):
    started: list[tuple[Entity, datetime | None]]
    cancelled: list[Entity]


class Timers:
    """One timer for every entity whose last alert is not over (a state cell); None waits for matches only."""

    def __init__(self) -> None:
        self._at: dict[Entity, datetime | None] = {}
        self._changed: set[Entity] = set()

    def __contains__(self, entity: Entity) -> bool:
        return entity in self._at

    @property
    def dirty(self) -> bool:
        """Whether anything has changed since it was stored."""
        return bool(self._changed)

    def start(self, entity: Entity, at: datetime | None) -> None:
        """Start the timer of `entity`, or replace it."""
        if entity not in self._at or self._at[entity] != at:
            self._at[entity] = at
            self._changed.add(entity)

    def cancel(self, entity: Entity) -> None:
        """Remove the timer of `entity`, if it has one."""
        if entity in self._at:
            del self._at[entity]
            self._changed.add(entity)

    def due(self, watermark: datetime) -> set[Entity]:
        """Return the entities whose time has come."""
        return {entity for entity, at in self._at.items() if at is not None and at <= watermark}

    def next(self) -> datetime | None:
        """Return the earliest time of any timer; None when none waits for a time."""
        return min((at for at in self._at.values() if at is not None), default=None)

    def stored(self) -> object:
        """Return every timer."""
        self._changed = set()
        return list(self._at.items())

    def changes(self) -> object:
        """Return the timers that were started, and the entities whose timer was cancelled, both sorted."""
        changed, self._changed = sorted(self._changed), set()
        return _TimersDelta(
            [(entity, self._at[entity]) for entity in changed if entity in self._at],
            [entity for entity in changed if entity not in self._at],
        )

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self._at = dict(loads(encoded, list[tuple[Entity, datetime | None]]))

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        delta = loads(encoded, _TimersDelta)
        self._at.update(delta.started)
        for entity in delta.cancelled:
            self._at.pop(entity, None)
