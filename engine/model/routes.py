"""Who is told of what: matchers, routes with their timings, silences. The words are Alertmanager's."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

GROUP_WAIT_S = 30.0
GROUP_INTERVAL_S = 300.0
REPEAT_INTERVAL_S = 4 * 3600.0


class LabelMatcher(Struct, frozen=True):
    """A condition on one label. `op`: = != =~ !~; the last two take a whole-value RE2 expression. A missing label is empty."""

    label: str
    op: str
    value: str

    def __str__(self) -> str:
        """Return it as it is written in the configuration."""
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label}{self.op}"{quoted}"'


class Timings(Struct, frozen=True):
    """Seconds: before the first notification, between notifications of changes, and between repetitions while it lasts."""

    group_wait_s: float = GROUP_WAIT_S
    group_interval_s: float = GROUP_INTERVAL_S
    repeat_interval_s: float = REPEAT_INTERVAL_S


Ranges = tuple[tuple[int, int], ...]  # of whole numbers, both ends included


class TimeSpan(Struct, frozen=True):
    """Times by a clock on the wall of `zone`: all parts must hold, an empty one always does.

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
    """A named set of times: those of any of `spans`."""

    name: str
    spans: tuple[TimeSpan, ...]


class Hours(Struct, frozen=True):
    """When a route tells: not in any of `mute`, and only in one of `active` when there are some."""

    mute: tuple[TimeInterval, ...] = ()
    active: tuple[TimeInterval, ...] = ()


class Route(Struct, frozen=True):
    """A node of the route tree: all `matchers` must hold; the first of `routes` that holds takes over, and those after a
    `goes_on` one are tried as well (`continue` in the configuration)."""

    receiver: str
    matchers: tuple[LabelMatcher, ...] = ()
    timings: Timings = field(default_factory=Timings)
    goes_on: bool = False
    routes: tuple[Route, ...] = ()
    hours: Hours = field(default_factory=Hours)


class Silence(Struct, frozen=True):
    """Nobody is told of incidents that all `matchers` fit, from `starts_at` until before `ends_at`."""

    id: str
    matchers: tuple[LabelMatcher, ...]
    starts_at: datetime
    ends_at: datetime
    comment: str = ""
