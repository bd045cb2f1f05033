"""The route tree of tocsin.yml: its structure, and the routes it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from engine.config.faults import wrong
from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.schema import Duration, Flag, Strict, Text
from engine.model.routes import Hours, LabelMatcher, Route, TimeInterval, Timings
from engine.route import MatcherError, parse_matcher


def _matcher(value: Any) -> Any:
    try:
        return parse_matcher(value if isinstance(value, str) else "")
    except MatcherError as error:
        raise wrong(Code.BAD_MATCHER, str(error), "operators: = != =~ !~") from None


MatcherText = Annotated[Any, BeforeValidator(_matcher)]


class RouteEntry(Strict):
    """a route: who is told of what, and when"""

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
            raise wrong(Code.NOT_AVAILABLE, sentence, "leave the key out; `explains` in a rule says what belongs together")
        return value


_OF_BRANCHES = ("matchers", "continue", "mute_time_intervals", "active_time_intervals")


class RootEntry(RouteEntry):
    """the route: who is told of everything that no branch takes"""

    receiver: Text

    @model_validator(mode="before")
    @classmethod
    def _takes_everything(cls, value: Any) -> Any:
        if isinstance(value, dict) and (own := [key for key in _OF_BRANCHES if key in value]):
            raise wrong(Code.ROUTE_SHAPE, f"takes everything, so it has no `{own[0]}`", "put it into one of its `routes`")
        return value


def named_receivers(entry: RouteEntry, loc: Loc = ("route",)) -> Iterator[tuple[Loc, str]]:
    """Yield every receiver that the tree names, with its place."""
    if entry.receiver is not None:
        yield (*loc, "receiver"), entry.receiver
    for index, branch in enumerate(entry.routes):
        yield from named_receivers(branch, (*loc, "routes", index))


def named_intervals(entry: RouteEntry, loc: Loc = ("route",)) -> Iterator[tuple[Loc, str]]:
    """Yield every time interval that the tree names, with its place."""
    for key in ("mute_time_intervals", "active_time_intervals"):
        yield from (((*loc, key, index), name) for index, name in enumerate(getattr(entry, key)))
    for index, branch in enumerate(entry.routes):
        yield from named_intervals(branch, (*loc, "routes", index))


def route_tree(
    entry: RouteEntry,
    receiver: str,
    intervals: Mapping[str, TimeInterval],
    above: Timings = Timings(),  # noqa: B008 - frozen
) -> Route:
    """Return the tree of `entry`; a receiver and timings that a branch leaves out are those of the route above it, time
    intervals are not (as in Alertmanager)."""
    own = entry.receiver or receiver
    timings = Timings(
        above.group_wait_s if entry.group_wait is None else entry.group_wait,
        above.group_interval_s if entry.group_interval is None else entry.group_interval,
        above.repeat_interval_s if entry.repeat_interval is None else entry.repeat_interval,
    )
    matchers: tuple[LabelMatcher, ...] = tuple(entry.matchers)
    branches = tuple(route_tree(branch, own, intervals, timings) for branch in entry.routes)
    muting = tuple(intervals[name] for name in entry.mute_time_intervals)
    hours = Hours(muting, tuple(intervals[name] for name in entry.active_time_intervals))
    return Route(own, matchers, timings, entry.continue_, branches, hours)
