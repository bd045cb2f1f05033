"""What a correlation type is: a logic object that is told of matches, and says verdicts. No clock, no I/O, no threads.

Adding a type is adding a module to `engine/correlate/types`: it names its `TYPE` and makes a logic of a Correlation.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from datetime import datetime
from functools import cache
from typing import Protocol

from msgspec import Struct, field

from engine.correlate import types
from engine.correlate.bindings import Bindings
from engine.correlate.clocks import Clocks
from engine.model.incidents import Alert, Evidence, Verdict
from engine.model.matches import Match, Value
from engine.model.records import Labels
from engine.model.rules import Correlation, Plan
from engine.quarantine import Quarantine

Entity = tuple[tuple[str, str], ...]
RuleNotEvaluated = tuple[str, str]  # what cannot be judged, and why


class Facts(Struct, frozen=True):
    """What every logic of a scope may ask: how far time has come, who speaks, and what the configuration says.

    `grown` are the events that were taken back since the last flush because they go on: their text is another one now. What
    raises goes into `quarantine`; without one it is raised.
    """

    scope: str
    clocks: Clocks
    bindings: Bindings
    context: Mapping[str, str]
    grown: set[str] = field(default_factory=set)
    quarantine: Quarantine | None = None


class Logic(Protocol):
    """The state of one rule in one scope, and its evaluation.

    Matches may come in any order and more than once: what is said depends on the set of them alone.
    """

    rule_id: str
    listens: frozenset[str]  # ids of the rules whose matches it is told of
    follows_clocks: bool  # whether it has to be asked whenever any source has moved
    told: Emissions
    dirty: bool  # whether `snapshot` differs from what was restored or snapshotted last

    @property
    def full(self) -> bool:
        """Return whether it has to be asked before it takes another match: it might keep less of it than it needs."""

    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match of one of the rules it listens to."""

    def on_retract(self, match: Match, facts: Facts) -> None:
        """Take back a match: its event turned out to be longer, and is matched anew."""

    def on_progress(self, facts: Facts) -> None:
        """Take note that time or what is known of the sources has moved; called before `findings`."""

    def next_deadline(self) -> datetime | None:
        """Return the watermark at which it has to be asked again though no match came; None: never."""

    def findings(self, facts: Facts) -> Iterator[Verdict | Evidence]:
        """Yield what has changed since the last call."""

    def unjudged(self, facts: Facts) -> Iterable[RuleNotEvaluated]:
        """Return what this rule cannot judge."""

    def snapshot(self) -> str:
        """Return everything it knows as JSON."""

    def changes(self) -> str | None:
        """Return as JSON what is new since `snapshot`, `changes` or `restore` was called last; None: take a snapshot."""

    def restore(self, text: str, *since: str) -> None:
        """Continue from a snapshot and the changes after it, in order; called at most once, before anything else."""


class CorrelationType(Protocol):
    """A module of `engine/correlate/types`."""

    TYPE: str
    logic: Callable[[Correlation, Plan], Logic]


@cache
def correlation_types() -> Mapping[str, CorrelationType]:
    """Return every correlation type there is, by the name that rules use."""
    names = sorted(module.name for module in pkgutil.iter_modules(types.__path__))
    modules = (importlib.import_module(f"{types.__name__}.{name}") for name in names)
    return {module.TYPE: module for module in modules}


def word_value(match: Match, label: str, word: str, scope: str) -> str | None:
    """Return the value of an entity's label, read from `word`: the match's captures first, then its labels; None if missing."""
    if label == "cluster":
        return scope
    value: Value | None = match.captures.get(word)
    if value is None or value == "":
        value = match.labels.get(word)
    return None if value is None or value == "" else str(value)


def bound_entity(words: Iterable[tuple[str, str]], values: Iterable[str | None], source_id: str, facts: Facts) -> Entity:
    """Return the entity with these `values` of its labels and words: a missing one from what its source is bound to, else the
    source stands in."""
    bound = facts.bindings.value
    named = zip(words, values, strict=True)
    return tuple((label, value or bound(source_id, word) or f"?{source_id}") for (label, word), value in named)


def known_labels(entity: Entity) -> Labels:
    """Return the entity as labels, without what stands in for a missing value."""
    return {label: value for label, value in entity if not value.startswith("?")}


class Emissions:
    """What was said last of each entity; it is said again when the alerts differ, or an event that proves them has grown.

    An entity whose alerts are all gone is as good as new. What another one goes on with are digests; the alerts themselves are
    known only to who has said them, and spare it to say those again that have not changed.
    """

    def __init__(self, said: Iterable[tuple[Entity, str]] = ()) -> None:
        self._said = dict(said)
        self._moved: set[Entity] = set()  # of which something else was said since that was stored
        self._alerts: dict[Entity, tuple[Alert, ...]] = {}
        self._digests: dict[Entity, tuple[str, ...]] = {}  # of these alerts, one by one
        self._changed_from: dict[Entity, datetime] = {}

    def is_news(self, entity: Entity, alerts: tuple[Alert, ...], facts: Facts) -> bool:
        """Return whether `alerts` have to be said now, and remember that they were."""
        before = self._alerts.get(entity)
        same = _alike(before or (), alerts, facts)
        if before is not None and len(before) == same == len(alerts):
            return False
        digests = (*self._digests.get(entity, ())[:same], *map(_digest, alerts[same:]))
        digest = _digest(digests) if alerts else ""
        if self._said.get(entity, "") == digest and not any(_grown(alert, facts) for alert in alerts):
            self._remember(entity, alerts, digests)
            return False
        self._moved.add(entity)
        self._changed_from.pop(entity, None)
        if before is not None:
            self._changed_from[entity] = min(alert.starts_at for alert in (*before[same:], *alerts[same:]))
        if digest:
            self._said[entity] = digest
            self._remember(entity, alerts, digests)
        else:
            self.forget(entity)
        return True

    def only_news(self, verdict: Verdict) -> Verdict:
        """Return `verdict`, which `is_news`, without the alerts before the first that differs from what was said."""
        since = self._changed_from.pop(verdict.key[2], None)
        return verdict if since is None else verdict.since(since)

    def entities(self) -> Set[Entity]:
        """Return the entities of which something was said."""
        return self._said.keys()

    def forget(self, entity: Entity) -> None:
        """Forget what was said of `entity`."""
        self._moved.add(entity)
        for known in (self._said, self._alerts, self._digests):
            known.pop(entity, None)

    def stored(self) -> list[tuple[Entity, str]]:
        """Return what another one goes on with."""
        self._moved.clear()
        return list(self._said.items())

    def changes(self) -> list[tuple[Entity, str]]:
        """Return what has changed of that since it was asked for last; "" where nothing is said any more."""
        moved, self._moved = sorted(self._moved), set()
        return [(entity, self._said.get(entity, "")) for entity in moved]

    def restore(self, changes: Iterable[tuple[Entity, str]]) -> None:
        """Continue from changes; called before anything is said."""
        self._said.update(changes)
        self._said = {entity: said for entity, said in self._said.items() if said}

    def _remember(self, entity: Entity, alerts: tuple[Alert, ...], digests: tuple[str, ...]) -> None:
        if alerts:
            self._alerts[entity], self._digests[entity] = alerts, digests


def _digest(said: Alert | tuple[str, ...]) -> str:
    """Return a short text that differs when what is said does."""
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()[:16]


def _alike(before: tuple[Alert, ...], now: tuple[Alert, ...], facts: Facts) -> int:
    """Return how many alerts are the same from the first one on, with what proves them."""
    pairs = enumerate(zip(before, now, strict=False))
    differ = (n for n, (old, new) in pairs if (old is not new and old != new) or _grown(new, facts))
    return next(differ, min(len(before), len(now)))


def _grown(alert: Alert, facts: Facts) -> bool:
    return bool(facts.grown) and not facts.grown.isdisjoint(alert.evidence)
