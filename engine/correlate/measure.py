"""The measure of a rule: what it counts, and when it begins to hold."""

from __future__ import annotations

from msgspec import Struct

from engine.correlate.episodes import Opening
from engine.correlate.versions import VersionBounds
from engine.model.matches import Match, Value


class Counted(Struct, frozen=True):
    """A rule whose matches are counted, with the collapse and distinct of its signature (see Signature)."""

    rule_id: str
    collapse_s: float = 0.0
    distinct: tuple[str, ...] = ()
    component: str = "any"
    versions: VersionBounds = ()
    not_during: tuple[str, ...] = ()


class Measure(Struct, frozen=True):
    """How a rule measures its matches.

    Attributes:
        opening: decides when the rule begins to hold.
        field: the capture or label whose distinct values are counted; "" to count matches. Matches with different values are
            never merged into one aggregate.
        timed: whether the time of each match matters, also of matches that are stored as aggregates.
        single: whether one match of an entity is enough for an alert; then very many entities may share one alert.
    """

    opening: Opening
    field: str = ""
    timed: bool = True
    single: bool = False

    def takes(self, match: Match) -> bool:
        """Return whether `match` has a value to measure."""
        return not self.field or self._measured(match) is not None

    def value(self, match: Match) -> str:
        """Return the value of `field` in a match, as text; "" when matches are counted."""
        return str(self._measured(match)) if self.field else ""

    def _measured(self, match: Match) -> Value | None:
        return match.captures.get(self.field, match.labels.get(self.field))
