"""The route tree of tocsin.yml: its structure, and the routes it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from engine.config.faults import wrong
from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.schema import Duration, Flag, Strict, Text
from engine.model.routes import Matcher, Route, Timings
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
    routes: list[RouteEntry] = Field(default=[])

    @model_validator(mode="before")
    @classmethod
    def _groups_nothing(cls, value: Any) -> Any:
        if isinstance(value, dict) and "group_by" in value:
            sentence = "`group_by` is not part of a route: alerts with one root are one incident, and an incident is the group"
            raise wrong(Code.NOT_AVAILABLE, sentence, "leave the key out; `explains` in a rule says what belongs together")
        return value


class RootEntry(RouteEntry):
    """the route: who is told of everything that no branch takes"""

    receiver: Text

    @model_validator(mode="before")
    @classmethod
    def _takes_everything(cls, value: Any) -> Any:
        if isinstance(value, dict) and (own := [key for key in ("matchers", "continue") if key in value]):
            raise wrong(Code.ROUTE_SHAPE, f"takes everything, so it has no `{own[0]}`", "put it into one of its `routes`")
        return value


def named_receivers(entry: RouteEntry, loc: Loc = ("route",)) -> Iterator[tuple[Loc, str]]:
    """Yield every receiver that the tree names, with its place."""
    if entry.receiver is not None:
        yield (*loc, "receiver"), entry.receiver
    for index, branch in enumerate(entry.routes):
        yield from named_receivers(branch, (*loc, "routes", index))


def route_tree(entry: RouteEntry, receiver: str, above: Timings = Timings()) -> Route:  # noqa: B008 - frozen
    """Return the tree of `entry`; what a branch leaves out is as in the route above it."""
    own = entry.receiver or receiver
    timings = Timings(
        above.group_wait_s if entry.group_wait is None else entry.group_wait,
        above.group_interval_s if entry.group_interval is None else entry.group_interval,
        above.repeat_interval_s if entry.repeat_interval is None else entry.repeat_interval,
    )
    matchers: tuple[Matcher, ...] = tuple(entry.matchers)
    return Route(own, matchers, timings, entry.continue_, tuple(route_tree(branch, own, timings) for branch in entry.routes))
