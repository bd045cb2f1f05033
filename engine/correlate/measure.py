"""What a rule counts, and what it asks of that."""

from __future__ import annotations

from msgspec import Struct

from engine.correlate.episodes import Opening
from engine.correlate.versions import VersionBounds
from engine.model.matches import Match, Value


class Counted(Struct, frozen=True):
    """A rule whose matches are counted, with what its signature says of them."""

    rule_id: str
    collapse_s: float = 0.0
    distinct: tuple[str, ...] = ()
    component: str = "any"
    versions: VersionBounds = ()


class Measure(Struct, frozen=True):
    """What a rule asks of its matches: when it begins to hold, and which capture or label each of them must have.

    `single`: one match of an entity is enough, so that of very many entities some may be told together.
    `apart`: matches with different values of it are kept apart, so that no bound makes two values one. `timed`: it
    matters when each of them was, also of those that are kept only as sums.
    """

    opening: Opening
    field: str = ""
    apart: bool = False
    timed: bool = True
    single: bool = False

    def takes(self, match: Match) -> bool:
        """Return whether `match` has what is measured: any value, or a number where values are not kept apart."""
        if not self.field:
            return True
        value = self._measured(match)
        return value is not None and (self.apart or not isinstance(value, str))

    def value(self, match: Match) -> str:
        """Return by which value `match` is kept apart."""
        return str(self._measured(match)) if self.apart else ""

    def _measured(self, match: Match) -> Value | None:
        return match.captures.get(self.field, match.labels.get(self.field))
