"""Routing of notifications: matchers, routes with their timings, silences. The terms are Alertmanager's."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

GROUP_WAIT_S = 30.0
GROUP_INTERVAL_S = 300.0
REPEAT_INTERVAL_S = 4 * 3600.0


class LabelMatcher(Struct, frozen=True):
    """A condition on one label. `op`: = != =~ !~; the last two match the whole value with RE2. A missing label is empty."""

    label: str
    op: str
    value: str

    def __str__(self) -> str:
        """Return the matcher as written in the configuration."""
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label}{self.op}"{quoted}"'


class Timings(Struct, frozen=True):
    """Seconds before the first notification, between notifications of changes, and between repetitions of an open incident."""

    group_wait_s: float = GROUP_WAIT_S
    group_interval_s: float = GROUP_INTERVAL_S
    repeat_interval_s: float = REPEAT_INTERVAL_S


Ranges = tuple[tuple[int, int], ...]  # of whole numbers, both ends included


class TimeSpan(Struct, frozen=True):
    """Times in the time zone `zone`: all parts must hold; an empty part always does.

    `times` are minutes of the day from the first until before the second; `weekdays` count from Sunday, 0; in `days` of the
    month -1 is the last.
    """

    times: Ranges = ()
    weekdays: Ranges = ()
    days: Ranges = ()
    months: Ranges = ()
    years: Ranges = ()
    zone: str = "UTC"


class TimeInterval(Struct, frozen=True):
    """A named set of times: the union of `spans`."""

    name: str
    spans: tuple[TimeSpan, ...]


class Hours(Struct, frozen=True):
    """When a route notifies: outside all of `mute`, and inside one of `active` unless that is empty."""

    mute: tuple[TimeInterval, ...] = ()
    active: tuple[TimeInterval, ...] = ()


class Route(Struct, frozen=True):
    """A node of the route tree: all `matchers` must hold. The first of `routes` that holds takes over; after one with `goes_on`
    (`continue` in the configuration) the next ones are tried as well."""

    receiver: str
    matchers: tuple[LabelMatcher, ...] = ()
    timings: Timings = field(default_factory=Timings)
    goes_on: bool = False
    routes: tuple[Route, ...] = ()
    hours: Hours = field(default_factory=Hours)


class Silence(Struct, frozen=True):
    """Mutes incidents that all `matchers` match, from `starts_at` until before `ends_at`. `by`: who added it, or empty."""

    id: str
    matchers: tuple[LabelMatcher, ...]
    starts_at: datetime
    ends_at: datetime
    comment: str = ""
    by: str = ""
