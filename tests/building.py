"""Hand-made rules, plans and items for tests of the pure stages: short to write, complete, nothing read from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.dsl.signs import signs_of_detection, signs_of_test
from engine.model.expressions import Binary, Expression, Literal, NameExpression
from engine.model.matches import ActivitySpan, Match, Value
from engine.model.records import LogEvent, Progress, Tick
from engine.model.rules import (
    Absence,
    Captured,
    Component,
    Correlation,
    Heartbeat,
    Hole,
    Item,
    Plan,
    Rule,
    Runbook,
    Signature,
    StatePhase,
    Step,
    Template,
    Test,
)

START = datetime(2022, 10, 5, 17, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return the time `seconds` after START."""
    return START + timedelta(seconds=seconds)


def text(*parts: str | Expression) -> Template:
    """Return a template of fixed texts and expressions."""
    return Template(tuple(part if isinstance(part, str) else Hole(part) for part in parts))


def rule(id: str, entity: Iterable[str] | Mapping[str, str] = ("cluster",), **changes: Any) -> Rule:
    """Return a rule of severity high for any component, whose title and cause are its id."""
    made: dict[str, Any] = {
        "title": text(id),
        "status": "stable",
        "severity": "high",
        "component": "any",
        "versions": (),
        "runbook": Runbook(text(id), text("")),
    }
    mapping = entity if isinstance(entity, Mapping) else {label: label for label in entity}
    return Rule(id=id, entity=mapping, **{**made, **changes})


def setting(where: str, *names: str) -> Runbook:
    """Return a runbook whose fix sets these settings at `where`."""
    return Runbook(text("why"), text(""), (Step(text("set it"), where, {name: text("1") for name in names}),))


def contains(value: str, field: str = "text") -> Test:
    """Return a test for fixed text."""
    return Test(field, "contains", value, literals=(value,), signs=signs_of_test("contains", field, value))


def pattern(regex: str, *captures: str, literals: tuple[str, ...] = ()) -> Test:
    """Return a pattern test whose groups are captured under `captures`, each as name or name:type."""
    named = [capture.partition(":") for capture in captures]
    holes = tuple(Captured(group, name, type_ or "word") for group, (name, _, type_) in enumerate(named, 1))
    return Test("text", "pattern", regex, regex, literals, holes, signs=signs_of_test("pattern", "text", regex, regex))


def signature(id: str, *tests: Test, entity: Iterable[str] | Mapping[str, str] = ("cluster",), **changes: Any) -> Signature:
    """Return a signature with one item named `line`; collapse_s and distinct go to it, all else to its rule."""
    own = {name: changes.pop(name) for name in ("collapse_s", "distinct") if name in changes}
    return detecting(rule(id, entity, **changes), [Item("line", (tests or (contains(id),),))], NameExpression("line"), **own)


def detecting(rule: Rule, items: Sequence[Item], condition: Expression, **changes: Any) -> Signature:
    """Return a signature of `items`, with its signs."""
    return Signature(rule, tuple(items), condition, signs=signs_of_detection(items, condition), **changes)


def at_least(number: int) -> Expression:
    """Return the condition `count >= number`."""
    return Binary(">=", NameExpression("count"), Literal(number))


def counting(id: str, rules: Iterable[str], number: int, timespan_s: float, **changes: Any) -> Correlation:
    """Return an event_count over `rules` that holds from `number` occurrences in `timespan_s` on."""
    made = rule(id, changes.pop("entity", ("cluster",)), **changes)
    return Correlation(made, "event_count", tuple(rules), timespan_s, at_least(number))


def correlation(id: str, type: str, rules: Iterable[str], timespan_s: float, **changes: Any) -> Correlation:
    """Return a correlation of any type but absence; condition, field and expect go to it, all else to its rule."""
    own = {name: changes.pop(name) for name in ("condition", "field", "expect") if name in changes}
    return Correlation(rule(id, changes.pop("entity", ("cluster",)), **changes), type, tuple(rules), timespan_s, **own)


def absence(id: str, what: Absence, **changes: Any) -> Correlation:
    """Return an absence rule of severity critical."""
    made = rule(id, changes.pop("entity", ("cluster", "broker")), **{"severity": "critical", **changes})
    return Correlation(made, "absence", (), what.timespan_s, None, what)


def broker(versions: tuple[tuple[str, str], ...] = ()) -> Component:
    """Return the component `broker`: names itself `broker=N`, prints a heartbeat every ten minutes."""
    beat = Heartbeat(contains("Removed 0 expired"), 600.0, versions)
    return Component(
        "broker", "broker", (pattern(r"broker=(\d+)", "member"),), (pattern(r"version (\S+)", "version"),), (beat,)
    )


def replaying(at_most_s: float = 600.0) -> Component:
    """Return the component `node`: replays from `begun` to `caught up`."""
    phase = StatePhase((contains("begun"),), (contains("caught up"),), at_most_s)
    return Component("node", "node", (pattern(r"node=(\d+)", "member"),), states={"replaying": (phase,)})


def plan(
    *rules: Signature | Correlation, components: Iterable[Component] = (), context: Mapping[str, str] | None = None
) -> Plan:
    """Return a plan of these rules."""
    signatures = tuple(each for each in rules if isinstance(each, Signature))
    correlations = tuple(each for each in rules if isinstance(each, Correlation))
    return Plan((), tuple(components), signatures, correlations, context=context or {})


def event(text: str, seconds: float | None = 0.0, source: str = "a.log", **changes: Any) -> LogEvent:
    """Return an event of `source`; without a stamp when `seconds` is None. Its id follows from source, time and text."""
    stamp = None if seconds is None else at(seconds)
    labels = {"source": source, "cluster": "default", **changes.pop("labels", {})}
    made = {"event_id": f"{source}:{seconds}:{text}", "offset": 0, "number": 1, "message": text.partition("\n")[0]}
    return LogEvent(source_id=source, timestamp=stamp, at=stamp or START, text=text, labels=labels, **{**made, **changes})


def match(id: str, seconds: float, source: str = "a.log", dated: bool = True, labels: Any = None, **captures: Value) -> Match:
    """Return a match of rule `id`; its event id follows from rule, source, time and captures."""
    event_id = f"{id}@{seconds}/{source}/{sorted(captures.items())}"
    every = {"source": source, "cluster": "default", **(labels or {})}
    return Match(id, event_id, source, 1, at(seconds), dated, captures, every, f"{id} at {seconds}")


def seen(source: str, first: float, last: float, **labels: str) -> ActivitySpan:
    """Return a span of `source`."""
    return ActivitySpan(source, at(first), at(last), {"source": source, "cluster": "default", **labels})


def progress(source: str, caught_up: bool = True, closed: bool = False, covers_until: float | None = None) -> Progress:
    """Return progress of `source`, read to its end unless told otherwise."""
    end = 100 if caught_up else 200
    return Progress(source, 100, end, caught_up, None, closed, None if covers_until is None else at(covers_until))


def tick(seconds: float) -> Tick:
    """Return a tick."""
    return Tick(at(seconds))
