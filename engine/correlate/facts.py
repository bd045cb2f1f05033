"""The facts that every rule of a scope may read during evaluation: clocks, bindings and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.codec import loads
from engine.correlate.bindings import Bindings
from engine.correlate.clocks import Clocks
from engine.quarantine import Quarantine

RuleNotEvaluated = tuple[str, str]  # what cannot be judged, and why


class Facts(Struct, frozen=True):
    """The shared state of one scope: the clocks of its sources, whose sources they are, and the context of the configuration.

    `extended` holds the ids of events that were retracted since the last flush because more lines followed: their text has
    changed. Errors go into `quarantine`; without one they are raised.
    """

    scope: str
    clocks: Clocks
    bindings: Bindings
    context: Mapping[str, str]
    extended: set[str] = field(default_factory=set)
    quarantine: Quarantine | None = None


class _SeenSnapshot(Struct, frozen=True):
    bindings_revision: int = -1
    watermark: datetime | None = None


class SeenFacts:
    """The revision of the bindings and the watermark at the last evaluation of a rule (a state cell, never dirty by itself)."""

    dirty = False

    def __init__(self) -> None:
        self._seen = _SeenSnapshot()

    @property
    def watermark(self) -> datetime | None:
        """The watermark at the last evaluation; None when there was none."""
        return self._seen.watermark

    def update(self, facts: Facts) -> tuple[bool, bool]:
        """Take the current facts; return whether the bindings have changed, and whether the watermark has gone back.

        The watermark goes back when a source appears whose lines are older: ends may have been declared too early.
        """
        before, watermark = self._seen, facts.clocks.watermark()
        went_back = watermark is not None and before.watermark is not None and watermark < before.watermark
        self._seen = _SeenSnapshot(facts.bindings.revision, before.watermark if watermark is None else watermark)
        return facts.bindings.revision != before.bindings_revision, went_back

    def stored(self) -> object:
        """Return the cell as it is encoded."""
        return self._seen

    def changes(self) -> object:
        """Return the cell as it is encoded: it is small."""
        return self._seen

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self._seen = loads(encoded, _SeenSnapshot)

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        self.restore(encoded)
