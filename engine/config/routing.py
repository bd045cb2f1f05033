"""The `route` of tocsin.yml: schema and conversion to the route tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from engine.config.faults import finding_error
from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.schema import Duration, Flag, Strict, Text
from engine.model.routes import Hours, LabelMatcher, Route, TimeInterval, Timings
from engine.route import MatcherError, parse_matcher


def _matcher(value: Any) -> Any:
    try:
        return parse_matcher(value if isinstance(value, str) else "")
    except MatcherError as error:
        raise finding_error(Code.BAD_MATCHER, str(error), "operators: = != =~ !~") from None


MatcherText = Annotated[Any, BeforeValidator(_matcher, json_schema_input_type=str)]


class RouteEntry(Strict):
    """a route: matchers, timings and a receiver"""

    receiver: Text | None = None
    matchers: list[MatcherText] = Field(default=[])
    continue_: Flag = Field(default=False, alias="continue")
    group_wait: Duration | None = None
    group_interval: Duration | None = None
    repeat_interval: Duration | None = None
    mute_time_intervals: list[Text] = Field(default=[])
    active_time_intervals: list[Text] = Field(default=[])
    routes: list[RouteEntry] = Field(default=[])

    @model_validator(mode="before")
    @classmethod
    def _groups_nothing(cls, value: Any) -> Any:
        if isinstance(value, dict) and "group_by" in value:
            sentence = "`group_by` is not part of a route: alerts with one root are one incident, and an incident is the group"
            raise finding_error(
                Code.NOT_AVAILABLE, sentence, "leave the key out; `explains` in a rule decides which alerts belong together"
            )
        return value


_OF_BRANCHES = ("matchers", "continue", "mute_time_intervals", "active_time_intervals")


class RootEntry(RouteEntry):
    """the route: the receiver of every incident that no branch takes"""

    receiver: Text

    @model_validator(mode="before")
    @classmethod
    def _takes_everything(cls, value: Any) -> Any:
        if isinstance(value, dict) and (own := [key for key in _OF_BRANCHES if key in value]):
            raise finding_error(
                Code.ROUTE_SHAPE, f"takes everything, so it has no `{own[0]}`", "put it into one of its `routes`"
            )
        return value


def receiver_references(entry: RouteEntry, loc: Loc = ("route",)) -> Iterator[tuple[Loc, str]]:
    """Yield (place, name) of every receiver in the tree."""
    if entry.receiver is not None:
        yield (*loc, "receiver"), entry.receiver
    for index, branch in enumerate(entry.routes):
        yield from receiver_references(branch, (*loc, "routes", index))


def interval_references(entry: RouteEntry, loc: Loc = ("route",)) -> Iterator[tuple[Loc, str]]:
    """Yield (place, name) of every time interval in the tree."""
    for key in ("mute_time_intervals", "active_time_intervals"):
        yield from (((*loc, key, index), name) for index, name in enumerate(getattr(entry, key)))
    for index, branch in enumerate(entry.routes):
        yield from interval_references(branch, (*loc, "routes", index))


def route_tree(
    entry: RouteEntry,
    receiver: str,
    intervals: Mapping[str, TimeInterval],
    above: Timings = Timings(),  # noqa: B008 - frozen
) -> Route:
    """Return the route tree of `entry`.

    A branch inherits receiver and timings from the route above it, but not its time intervals, as in Alertmanager. Names that
    `intervals` lacks are left out; they are reported elsewhere.
    """
    own = entry.receiver or receiver
    timings = Timings(
        above.group_wait_s if entry.group_wait is None else entry.group_wait,
        above.group_interval_s if entry.group_interval is None else entry.group_interval,
        above.repeat_interval_s if entry.repeat_interval is None else entry.repeat_interval,
    )
    matchers: tuple[LabelMatcher, ...] = tuple(entry.matchers)
    branches = tuple(route_tree(branch, own, intervals, timings) for branch in entry.routes)
    muting = tuple(intervals[name] for name in entry.mute_time_intervals if name in intervals)
    hours = Hours(muting, tuple(intervals[name] for name in entry.active_time_intervals if name in intervals))
    return Route(own, matchers, timings, entry.continue_, branches, hours)


def receivers_of(route: Route) -> frozenset[str]:
    """Return the receivers that a route or one below it names or inherits."""
    own = frozenset((route.receiver,))
    return own.union(*(receivers_of(branch) for branch in route.routes))


def hours_of(route: Route) -> frozenset[str]:
    """Return the names of the time intervals that a route or one below it uses."""
    own = frozenset(interval.name for interval in (*route.hours.mute, *route.hours.active))
    return own.union(*(hours_of(branch) for branch in route.routes))
