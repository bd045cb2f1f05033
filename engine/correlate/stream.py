"""`correlate`: the stage of the pipeline between matching and grouping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.correlate.correlator import Correlator
from engine.model.incidents import Finding
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress, Tick, parent_id
from engine.model.rules import Plan
from engine.quarantine import Quarantine

FLUSH_EVERY = 8000  # matches; a flush evaluates every entity that has new ones
DEFAULT_SCOPE = "default"


def correlate(
    items: Iterable[Match | ActivitySpan | Progress | Tick], plan: Plan, quarantine: Quarantine | None = None
) -> Iterator[Finding]:
    """Yield the findings of each scope, after every FLUSH_EVERY matches and at the end.

    A scope is a cluster, by the label of matches and activity spans. Progress is passed to the scopes in which its source was
    active, a tick to all of them.
    """
    scopes = _Scopes(plan, quarantine)
    matches = 0
    for item in items:
        scopes.observe(item)
        matches += isinstance(item, Match)
        if matches >= FLUSH_EVERY:
            matches = 0
            yield from scopes.flush()
    yield from scopes.flush()


class _Scopes:
    """The correlators by scope, and the scopes of each source."""

    def __init__(self, plan: Plan, quarantine: Quarantine | None) -> None:
        self._plan, self._quarantine = plan, quarantine
        self._correlators: dict[str, Correlator] = {}
        self._scopes_of: dict[str, set[str]] = {}
        self._progress: dict[str, Progress] = {}
        self._tick: Tick | None = None

    def observe(self, item: Match | ActivitySpan | Progress | Tick) -> None:
        if isinstance(item, Match | ActivitySpan):
            self._correlator(item).observe(item)
        elif isinstance(item, Progress):
            self._progress[item.source_id] = item
            for scope in self._scopes_of.get(item.source_id, ()):
                self._correlators[scope].observe(item)
        else:
            self._tick = item
            for correlator in self._correlators.values():
                correlator.observe(item)

    def flush(self) -> Iterator[Finding]:
        for correlator in self._correlators.values():
            yield from correlator.flush()

    def _correlator(self, item: Match | ActivitySpan) -> Correlator:
        """Return the correlator of the item's scope; a new one first gets the last tick and its sources' progress."""
        scope = item.labels.get("cluster", DEFAULT_SCOPE)
        correlator = self._correlators.get(scope)
        if correlator is None:
            correlator = self._correlators[scope] = Correlator(self._plan, scope, quarantine=self._quarantine)
            if self._tick is not None:
                correlator.observe(self._tick)
        for source_id in (item.source_id, parent_id(item.source_id)):
            scopes = self._scopes_of.setdefault(source_id, set())
            if scope not in scopes:
                scopes.add(scope)
                if source_id in self._progress:
                    correlator.observe(self._progress[source_id])
        return correlator
