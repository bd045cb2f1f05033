"""Correlations: what each type needs, takes and refuses, and its condition, compiled to the model (docs/correlations.md)."""

from __future__ import annotations

from msgspec import Struct

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.quantities import MAX_DIGITS, OPERATORS, duration_s
from engine.dsl.report import did_you_mean
from engine.dsl.schema import CorrelationEntry, StopEntry
from engine.dsl.templates import expression
from engine.dsl.world import World
from engine.model.expressions import Binary, Expression, Literal, NameExpression
from engine.model.rules import Absence, Correlation, Rule, Sooner, Stop

FIELD = "field"
_KEYS = ("rules", "timespan", "condition", "open", "expect", "within", "of", "sooner", "unless", "after")
_COUNTS = "for example: {type: event_count, rules: [a], group-by: [cluster], timespan: 1h, condition: {gte: 4}}"
_VALUES = "for example: {type: value_count, rules: [a], group-by: [topic], timespan: 1h, condition: {field: partition, gte: 4}}"
_PAIRS = "for example: {type: pair, open: [a], expect: [b], group-by: [cluster, topic], within: 5m}"


class _CorrelationShape(Struct, frozen=True):
    """Which keys a type needs, and may have besides them; whether its condition names a capture."""

    needs: tuple[str, ...]
    example: str
    may: tuple[str, ...] = ()
    field: bool = False


_SHAPES = {
    "event_count": _CorrelationShape(("rules", "timespan", "condition"), _COUNTS),
    "value_count": _CorrelationShape(("rules", "timespan", "condition"), _VALUES, field=True),
    "temporal_ordered": _CorrelationShape(
        ("rules", "timespan"), "for example: {type: temporal_ordered, rules: [a, b], timespan: 5m}"
    ),
    "pair": _CorrelationShape(("open", "expect", "within"), _PAIRS),
    "absence": _CorrelationShape(
        ("of", "timespan"),
        "for example: {type: absence, of: broker, group-by: [cluster, broker], timespan: heartbeat}",
        ("sooner", "unless", "after"),
    ),
}


def correlation_of(draft: Draft, given: CorrelationEntry, rule: Rule, timespan_s: float, world: World) -> Correlation:
    """Return the correlation that a draft describes; whatever is wrong goes to the draft's report."""
    shape = _SHAPES[given.type]
    _check_shape(draft, given, shape)
    field = _field(draft, given, shape, world)
    condition = _condition(draft, given) if "condition" in (*shape.needs, *shape.may) else None
    absence = _absence(given, timespan_s) if given.type == "absence" else None
    rules = given.open if given.type == "pair" else given.rules
    return Correlation(rule, given.type, tuple(rules), timespan_s, condition, absence, field, tuple(given.expect))


def timespan_s(draft: Draft, given: CorrelationEntry) -> float:
    """Return the time span in seconds, of a pair the time it waits; 0 for `heartbeat`, and when there is none."""
    if given.type == "pair":
        return given.within or 0.0
    node = draft.document.find(["correlation", "timespan"])
    if given.timespan == "heartbeat":
        if given.type != "absence":
            draft.report.add(Code.CORRELATION_SHAPE, node, "`heartbeat` is a time span of absence only", "write a duration")
        return 0.0
    try:
        return duration_s(given.timespan) if given.timespan else 0.0
    except ValueError:
        draft.report.add(
            Code.BAD_DURATION,
            node,
            f"`{given.timespan}` is not a duration",
            "for example: 30s, 10m, 1h, at most 3650d; or heartbeat",
        )
        return 0.0


def _check_shape(draft: Draft, given: CorrelationEntry, shape: _CorrelationShape) -> None:
    kind = f"a correlation of type {given.type}"
    here = draft.document.root.key("correlation") or draft.document.root
    for key in shape.needs:
        if not getattr(given, key):
            draft.report.add(Code.CORRELATION_SHAPE, here, f"{kind} needs `{key}`", shape.example)
    for key in _KEYS:
        if getattr(given, key) and key not in (*shape.needs, *shape.may):
            at = draft.document.key(["correlation", key])
            draft.report.add(Code.CORRELATION_SHAPE, at, f"{kind} takes no `{key}`", shape.example)
    if given.after and (given.unless or given.sooner):
        at = draft.document.key(["correlation", "after"])
        message = "a silence after a planned stop is excused by none, and nobody complains of it sooner"
        draft.report.add(Code.CORRELATION_SHAPE, at, message, "make it a rule of its own, without `unless` and `sooner`")
    if given.type == "temporal_ordered" and len(given.rules) == 1:
        at = draft.document.find(["correlation", "rules"])
        draft.report.add(Code.CORRELATION_SHAPE, at, "an order takes two rules or more", shape.example)
    if given.type == "pair" and draft.file.clear and draft.file.clear.rules:
        message = "a pair is over when what it expects comes; other signals do not end it"
        draft.report.add(Code.CORRELATION_SHAPE, draft.document.key(["clear", "rules"]), message, "name them in `expect`")


def _field(draft: Draft, given: CorrelationEntry, shape: _CorrelationShape, world: World) -> str:
    """Return the capture or label that the condition measures, empty where there is none."""
    condition = given.condition
    named = condition.get(FIELD) if isinstance(condition, dict) else None
    if not shape.field:
        if named is not None:
            at = draft.document.key(["correlation", "condition", FIELD])
            draft.report.add(Code.CORRELATION_SHAPE, at, f"a correlation of type {given.type} takes no `field`", shape.example)
        return ""
    if not isinstance(named, str):
        at = draft.document.find(["correlation", "condition"])
        message = f"a correlation of type {given.type} says in `field` which capture it measures"
        draft.report.add(Code.CORRELATION_SHAPE, at, message, shape.example)
        return ""
    _check_field(draft, named, world)
    return named


def _check_field(draft: Draft, name: str, world: World) -> None:
    """Report a field that is neither a label nor captured by every counted rule."""
    at = draft.document.find(["correlation", "condition", FIELD])
    for id_ in draft.file.correlation.rules if draft.file.correlation else ():
        known = {*world.captures(id_), *world.labels}
        if id_ in world.outlines and name not in known:
            draft.report.add(Code.UNKNOWN_ENTITY, at, f"`{id_}` captures no `{name}`", did_you_mean(name, known))


def _condition(draft: Draft, given: CorrelationEntry) -> Expression | None:
    """Return the condition over `count`: an expression, or a map of gt, gte, lt, lte, eq that must all hold."""
    if isinstance(given.condition, str):
        return expression(draft.document.find(["correlation", "condition"]), draft.report, {"count": "int"})
    if not isinstance(given.condition, dict):
        return None
    made: Expression | None = None
    for operator, number in given.condition.items():
        limit = _limit(draft, operator, number) if operator != FIELD else None
        if limit is not None:
            made = limit if made is None else Binary("and", made, limit)
    if made is None and not set(given.condition) - {FIELD}:
        at = draft.document.find(["correlation", "condition"])
        draft.report.add(Code.CORRELATION_SHAPE, at, "the condition compares with no number", _SHAPES[given.type].example)
    return made


def _limit(draft: Draft, operator: str, number: object) -> Expression | None:
    loc: Loc = ["correlation", "condition", operator]
    if operator not in OPERATORS:
        help_line = did_you_mean(operator, OPERATORS)
        draft.report.add(Code.UNKNOWN_KEY, draft.document.key(loc), f"unknown comparison `{operator}`", help_line)
        return None
    if not isinstance(number, str) or not number.isascii() or not number.isdigit() or len(number) > MAX_DIGITS:
        draft.report.add(Code.BAD_NUMBER, draft.document.find(loc), "must be a whole number of at most 19 digits")
        return None
    return Binary(OPERATORS[operator], NameExpression("count"), Literal(int(number)))


def _absence(given: CorrelationEntry, timespan_s: float) -> Absence:
    return Absence(given.of or "", timespan_s, _sooner(given), _stop(given.unless), _stop(given.after))


def _sooner(given: CorrelationEntry) -> Sooner | None:
    entry = given.sooner
    return Sooner(tuple(entry.rules), entry.naming, entry.timespan, tuple(entry.back)) if entry else None


def _stop(entry: StopEntry | None) -> Stop | None:
    return Stop(tuple(entry.rules), entry.within, entry.naming) if entry else None
