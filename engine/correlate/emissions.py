"""Emissions: which alerts of an entity were emitted last, so that only changes are emitted."""

from __future__ import annotations

import hashlib
from collections.abc import Set
from datetime import datetime

from engine.codec import loads
from engine.correlate.entities import Entity
from engine.correlate.facts import Facts
from engine.model.incidents import Alert, Verdict

_Digests = list[tuple[Entity, str]]


class Emissions:
    """The alerts emitted last, by entity (a state cell).

    They are emitted again when they differ, or when an event that proves one of them has been extended. An entity without
    alerts is dropped. Only digests are stored; the alerts themselves are in memory while the process lives, so that a new
    verdict can leave out those that have not changed.
    """

    def __init__(self) -> None:
        self._emitted: dict[Entity, str] = {}  # one digest of all alerts of an entity
        self._changed: set[Entity] = set()  # entities whose digest differs from the stored one
        self._alerts: dict[Entity, tuple[Alert, ...]] = {}
        self._alert_digests: dict[Entity, tuple[str, ...]] = {}
        self._changed_from: dict[Entity, datetime] = {}

    @property
    def dirty(self) -> bool:
        """Whether anything has changed since it was stored."""
        return bool(self._changed)

    def is_news(self, entity: Entity, alerts: tuple[Alert, ...], facts: Facts) -> bool:
        """Return whether `alerts` must be emitted, and record them as emitted."""
        before = self._alerts.get(entity)
        same = _common_prefix(before or (), alerts, facts)
        if before is not None and len(before) == same == len(alerts):
            return False
        digests = (*self._alert_digests.get(entity, ())[:same], *map(_digest, alerts[same:]))
        digest = _digest(digests) if alerts else ""
        if self._emitted.get(entity, "") == digest and not any(_is_extended(alert, facts) for alert in alerts):
            self._cache(entity, alerts, digests)
            return False
        self._changed.add(entity)
        self._changed_from.pop(entity, None)
        if before is not None:
            self._changed_from[entity] = min(alert.starts_at for alert in (*before[same:], *alerts[same:]))
        if digest:
            self._emitted[entity] = digest
            self._cache(entity, alerts, digests)
        else:
            self.forget(entity)
        return True

    def only_news(self, verdict: Verdict) -> Verdict:
        """Return `verdict`, for which `is_news` was True, without the alerts before the first that has changed."""
        since = self._changed_from.pop(verdict.key[2], None)
        return verdict if since is None else verdict.since(since)

    def entities(self) -> Set[Entity]:
        """Return the entities that have emitted alerts."""
        return self._emitted.keys()

    def forget(self, entity: Entity) -> None:
        """Drop the emitted alerts of `entity`."""
        self._changed.add(entity)
        self._emitted.pop(entity, None)
        self._alerts.pop(entity, None)
        self._alert_digests.pop(entity, None)

    def stored(self) -> _Digests:
        """Return every entity with the digest of its alerts."""
        self._changed.clear()
        return list(self._emitted.items())

    def changes(self) -> _Digests:
        """Return the entities that have changed, sorted, with their digests; "" for one without alerts."""
        changed, self._changed = sorted(self._changed), set()
        return [(entity, self._emitted.get(entity, "")) for entity in changed]

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self._emitted = dict(loads(encoded, _Digests))

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        self._emitted.update(loads(encoded, _Digests))
        self._emitted = {entity: digest for entity, digest in self._emitted.items() if digest}

    def _cache(self, entity: Entity, alerts: tuple[Alert, ...], digests: tuple[str, ...]) -> None:
        if alerts:
            self._alerts[entity], self._alert_digests[entity] = alerts, digests


def _digest(value: Alert | tuple[str, ...]) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def _common_prefix(before: tuple[Alert, ...], now: tuple[Alert, ...], facts: Facts) -> int:
    """Return how many alerts, from the first one on, are equal and proved by events that were not extended."""
    pairs = enumerate(zip(before, now, strict=False))
    differing = (n for n, (old, new) in pairs if (old is not new and old != new) or _is_extended(new, facts))
    return next(differing, min(len(before), len(now)))


def _is_extended(alert: Alert, facts: Facts) -> bool:
    return bool(facts.extended) and not facts.extended.isdisjoint(alert.evidence)
