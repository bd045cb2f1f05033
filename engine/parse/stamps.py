"""Which stamps are times: those within bounds. One gate for every stamp of a line, its header's and its wrappers'.

Programs print `0001-01-01T00:00:00Z` for "no time", a damaged line any year, a wrong clock the next one. What no honest line
can bear is taken for no stamp at all: the line is as one without, and says that it was `misdated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from msgspec import Struct

from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, Labels, Record
from engine.parse.times import names_offset, parse_stamp, zone_of

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
LATEST = datetime(2101, 1, 1, tzinfo=UTC)  # where nobody knows when the line was taken
AHEAD = timedelta(minutes=5)
ZONES = timedelta(hours=14)  # the zone that is most ahead of UTC: Pacific/Kiritimati


class StampBounds(Struct, frozen=True):
    """When the lines of a source can have been written: from `earliest` on, and at most `ahead` of when they were taken."""

    earliest: datetime = EARLIEST
    ahead: timedelta = AHEAD

    def latest(self, taken: datetime | None, zoned: bool) -> datetime:
        """Return the latest time that a stamp may say of a line `taken` then; one that is not `zoned`, so names no offset, may
        be in the local time of a zone that is ahead of what it is read in."""
        known = self.taken(taken)
        return LATEST if known is None else known + (self.ahead if zoned else self.ahead + ZONES)

    def hold(self, at: datetime, taken: datetime | None, zoned: bool) -> bool:
        """Tell whether `at` may be the time of a line `taken` then (None: nobody knows)."""
        return self.earliest <= at <= self.latest(taken, zoned)

    def taken(self, taken: datetime | None) -> datetime | None:
        """Return when a line was taken, None where that is no time either: archives reset the times of files."""
        return taken if taken is not None and EARLIEST <= taken < LATEST else None


def bounds_of(labels: Labels) -> StampBounds:
    """Return the bounds of a source's stamps: what its configuration says (engine/config), else the ones of this module."""
    return _bounds(labels.get(EARLIEST_LABEL, ""), labels.get(AHEAD_LABEL, ""))


@lru_cache(maxsize=64)
def _bounds(earliest: str, ahead_s: str) -> StampBounds:
    return StampBounds(
        datetime.fromisoformat(earliest) if earliest else EARLIEST, timedelta(seconds=float(ahead_s)) if ahead_s else AHEAD
    )


def stamp_of(record: Record, text: str, layout: str, taken: datetime | None = None) -> tuple[datetime | None, bool]:
    """Return the time that a stamp of a line says, None when it is none, and whether that is so because it is out of bounds.

    Args:
        taken: tells the year of a stamp that has none, if that is better known than by when the line was ingested.
    """
    bounds, ingested = bounds_of(record.labels), record.ingested_at
    at = parse_stamp(text, layout, zone_of(record.labels.get("timezone", "")), taken or bounds.taken(ingested))
    if at is None or bounds.hold(at, ingested, names_offset(text, layout)):
        return at, False
    return None, True


def dated(record: Record, text: str, layout: str) -> Mapping[str, Any]:
    """Return the fields of a record that a wrapper's stamp changes: `at` when it is a time, `misdated` when it is out of
    bounds."""
    at, misdated = stamp_of(record, text, layout, record.at)
    return {"misdated": True} if misdated else {} if at is None else {"at": at}
