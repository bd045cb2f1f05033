"""Accepts only stamps within bounds as times. Every stamp of a line, its header's and its wrappers', passes here.

Programs print `0001-01-01T00:00:00Z` for "no time", a damaged line has any year, a wrong clock the next one. A stamp out of
bounds counts as no stamp: the line is treated as one without, and is marked as `misdated`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from msgspec import Struct

from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, NEAR_LABEL, Labels, Record
from engine.parse.times import names_offset, parse_stamp, zone_of

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
LATEST = datetime(2101, 1, 1, tzinfo=UTC)  # for lines without an ingest time
AHEAD = timedelta(minutes=5)
ZONES = timedelta(hours=14)  # of the zone that is furthest ahead of UTC: Pacific/Kiritimati
HALF_A_YEAR = timedelta(days=183)
# A date with its year, and a day without one, at the beginning of a line.
_WITH_YEAR = re.compile(
    rb"^[^\n]{0,40}?\b((?:19|20)\d\d)[-/](0[1-9]|1[0-2])[-/]([0-2]\d|3[01])[ T]\d\d:\d\d:\d\d", re.MULTILINE
)
_WITHOUT_YEAR = re.compile(rb"^\W{0,3}(?:[IWEF]\d{4}|[A-Z][a-z]{2} [ \d]\d|\d\d/\d\d) \d\d:\d\d:\d\d", re.MULTILINE)


class StampBounds(Struct, frozen=True):
    """The times at which the lines of a source can have been written: from `earliest` on, at most `ahead` after their ingest
    time. `near` is a day that one of its lines prints with the year; None: not known."""

    earliest: datetime = EARLIEST
    ahead: timedelta = AHEAD
    near: datetime | None = None

    def latest(self, ingested_at: datetime | None, has_offset: bool) -> datetime:
        """Return the latest time that the stamp of a line may print.

        A stamp without an offset may be the local time of a zone ahead of the one that it is read in, so it has 14 hours more.
        """
        ingested = self.ingest_time(ingested_at)
        return LATEST if ingested is None else ingested + (self.ahead if has_offset else self.ahead + ZONES)

    def contain(self, at: datetime, ingested_at: datetime | None, has_offset: bool) -> bool:
        """Return whether `at` may be the event time of a line with this ingest time (None: unknown)."""
        return self.earliest <= at <= self.latest(ingested_at, has_offset)

    def ingest_time(self, ingested_at: datetime | None) -> datetime | None:
        """Return `ingested_at`, or None where that is out of bounds itself: archives reset the times of files."""
        return ingested_at if ingested_at is not None and EARLIEST <= ingested_at < LATEST else None

    def reference(self, ingested_at: datetime | None) -> datetime | None:
        """Return the latest time of a stamp without a year: the ingest time, but no more than half a year after `near`."""
        ingested = self.ingest_time(ingested_at)
        latest = self.near + HALF_A_YEAR if self.near is not None else None
        return min((time for time in (ingested, latest) if time is not None), default=None)


def printed_day(head: bytes) -> str:
    """Return the first day with a year at the beginning of a line of `head`, as YYYY-MM-DD; empty without one, and where no
    line begins with a day that lacks its year."""
    day = _WITH_YEAR.search(head)
    return "" if day is None or _WITHOUT_YEAR.search(head) is None else b"-".join(day.groups()).decode()


def bounds_of(labels: Labels) -> StampBounds:
    """Return the bounds of a source's stamps: the configured ones (engine/config), else the defaults of this module."""
    return _bounds(labels.get(EARLIEST_LABEL, ""), labels.get(AHEAD_LABEL, ""), labels.get(NEAR_LABEL, ""))


@lru_cache(maxsize=64)
def _bounds(earliest: str, ahead_s: str, near: str) -> StampBounds:
    return StampBounds(
        datetime.fromisoformat(earliest) if earliest else EARLIEST,
        timedelta(seconds=float(ahead_s)) if ahead_s else AHEAD,
        _day(near),
    )


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:  # the 31st of a month of 30 days
        return None


def stamp_of(record: Record, text: str, layout: str, reference: datetime | None = None) -> tuple[datetime | None, bool]:
    """Return the time of a stamp, and whether the stamp is out of bounds; the time is None then, and when it is no stamp.

    Args:
        text: the stamp, in `layout`, a name that engine/parse/times lists.
        reference: gives its year to a stamp without one; None: a day that its source prints, or the ingest time, does.
    """
    bounds, ingested_at = bounds_of(record.labels), record.ingested_at
    zone = zone_of(record.labels.get("timezone", ""))
    at = parse_stamp(text, layout, zone, reference or bounds.reference(ingested_at))
    if at is None or bounds.contain(at, ingested_at, names_offset(text, layout)):
        return at, False
    return None, True


def dated(record: Record, text: str, layout: str) -> Mapping[str, Any]:
    """Return the fields that a wrapper's stamp sets in its record: `at` when it is a time, `misdated` when it is out of bounds,
    else none."""
    at, misdated = stamp_of(record, text, layout, record.at)
    return {"misdated": True} if misdated else {} if at is None else {"at": at}
