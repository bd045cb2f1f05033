"""Compile correlations to the model: check the keys of each type, and its condition (docs/correlations.md)."""

from __future__ import annotations

from msgspec import Struct

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.quantities import MAX_DIGITS, OPERATORS, duration_s
from engine.dsl.report import did_you_mean
from engine.dsl.schema import CorrelationEntry, StopEntry
from engine.dsl.symbols import SymbolTable
from engine.dsl.templates import expression
from engine.model.expressions import Binary, Expression, Literal, NameExpression
from engine.model.rules import Absence, Correlation, Rule, Sooner, Stop

FIELD = "field"
_KEYS = ("rules", "timespan", "condition", "open", "expect", "within", "of", "sooner", "unless", "after")
_COUNTS = "for example: {type: event_count, rules: [a], group-by: [cluster], timespan: 1h, condition: {gte: 4}}"
_VALUES = "for example: {type: value_count, rules: [a], group-by: [topic], timespan: 1h, condition: {field: partition, gte: 4}}"
_PAIRS = "for example: {type: pair, open: [a], expect: [b], group-by: [cluster, topic], within: 5m}"


class _CorrelationShape(Struct, frozen=True):
    """The keys that a correlation type needs and the optional ones; `field`: its condition names a capture."""

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


def correlation_of(draft: Draft, entry: CorrelationEntry, rule: Rule, timespan_s: float, symbols: SymbolTable) -> Correlation:
    """Return the correlation of `draft`; errors go to the draft's report."""
    shape = _SHAPES[entry.type]
    _check_shape(draft, entry, shape)
    field = _field(draft, entry, shape, symbols)
    condition = _condition(draft, entry) if "condition" in (*shape.needs, *shape.may) else None
    absence = _absence(entry, timespan_s) if entry.type == "absence" else None
    rules = entry.open if entry.type == "pair" else entry.rules
    return Correlation(rule, entry.type, tuple(rules), timespan_s, condition, absence, field, tuple(entry.expect))


def timespan_s(draft: Draft, entry: CorrelationEntry) -> float:
    """Return the time span in seconds; for a pair, its `within`. 0 for `heartbeat` and where there is none."""
    if entry.type == "pair":
        return entry.within or 0.0
    node = draft.document.find(["correlation", "timespan"])
    if entry.timespan == "heartbeat":
        if entry.type != "absence":
            draft.report.add(Code.CORRELATION_SHAPE, node, "`heartbeat` is a time span of absence only", "write a duration")
        return 0.0
    try:
        return duration_s(entry.timespan) if entry.timespan else 0.0
    except ValueError:
        draft.report.add(
            Code.BAD_DURATION,
            node,
            f"`{entry.timespan}` is not a duration",
            "for example: 30s, 10m, 1h, at most 3650d; or heartbeat",
        )
        return 0.0


def _check_shape(draft: Draft, entry: CorrelationEntry, shape: _CorrelationShape) -> None:
    kind = f"a correlation of type {entry.type}"
    here = draft.document.root.key("correlation") or draft.document.root
    for key in shape.needs:
        if not getattr(entry, key):
            draft.report.add(Code.CORRELATION_SHAPE, here, f"{kind} needs `{key}`", shape.example)
    for key in _KEYS:
        if getattr(entry, key) and key not in (*shape.needs, *shape.may):
            at = draft.document.key(["correlation", key])
            draft.report.add(Code.CORRELATION_SHAPE, at, f"{kind} takes no `{key}`", shape.example)
    if entry.after and (entry.unless or entry.sooner):
        at = draft.document.key(["correlation", "after"])
        message = "with `after`, the silence follows a planned stop, so `unless` and `sooner` do not apply"
        draft.report.add(Code.CORRELATION_SHAPE, at, message, "make it a rule of its own, without `unless` and `sooner`")
    if entry.type == "temporal_ordered" and len(entry.rules) == 1:
        at = draft.document.find(["correlation", "rules"])
        draft.report.add(Code.CORRELATION_SHAPE, at, "an order takes two rules or more", shape.example)
    if entry.type == "pair" and draft.file.clear and draft.file.clear.rules:
        message = "a pair is over when what it expects comes; other signals do not end it"
        draft.report.add(Code.CORRELATION_SHAPE, draft.document.key(["clear", "rules"]), message, "name them in `expect`")


def _field(draft: Draft, entry: CorrelationEntry, shape: _CorrelationShape, symbols: SymbolTable) -> str:
    """Return the capture or label that the condition measures; empty for types without one."""
    condition = entry.condition
    name = condition.get(FIELD) if isinstance(condition, dict) else None
    if not shape.field:
        if name is not None:
            at = draft.document.key(["correlation", "condition", FIELD])
            draft.report.add(Code.CORRELATION_SHAPE, at, f"a correlation of type {entry.type} takes no `field`", shape.example)
        return ""
    if not isinstance(name, str):
        at = draft.document.find(["correlation", "condition"])
        message = f"a correlation of type {entry.type} says in `field` which capture it measures"
        draft.report.add(Code.CORRELATION_SHAPE, at, message, shape.example)
        return ""
    _check_field(draft, name, symbols)
    return name


def _check_field(draft: Draft, name: str, symbols: SymbolTable) -> None:
    """Report a field that is neither a label nor captured by every counted rule."""
    at = draft.document.find(["correlation", "condition", FIELD])
    for id_ in draft.file.correlation.rules if draft.file.correlation else ():
        names = {*symbols.captures(id_), *symbols.labels}
        if id_ in symbols.outlines and name not in names:
            draft.report.add(Code.UNKNOWN_ENTITY, at, f"`{id_}` captures no `{name}`", did_you_mean(name, names))


def _condition(draft: Draft, entry: CorrelationEntry) -> Expression | None:
    """Return the condition over `count`, written as an expression or as a map of gt, gte, lt, lte, eq that must all hold.

    None where there is none or it is wrong, which is reported.
    """
    if isinstance(entry.condition, str):
        return expression(draft.document.find(["correlation", "condition"]), draft.report, {"count": "int"})
    if not isinstance(entry.condition, dict):
        return None
    condition: Expression | None = None
    for operator, number in entry.condition.items():
        limit = _limit(draft, operator, number) if operator != FIELD else None
        if limit is not None:
            condition = limit if condition is None else Binary("and", condition, limit)
    if condition is None and not set(entry.condition) - {FIELD}:
        at = draft.document.find(["correlation", "condition"])
        draft.report.add(Code.CORRELATION_SHAPE, at, "the condition compares with no number", _SHAPES[entry.type].example)
    return condition


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


def _absence(entry: CorrelationEntry, timespan_s: float) -> Absence:
    return Absence(entry.of or "", timespan_s, _sooner(entry), _stop(entry.unless), _stop(entry.after))


def _sooner(entry: CorrelationEntry) -> Sooner | None:
    sooner = entry.sooner
    return Sooner(tuple(sooner.rules), sooner.naming, sooner.timespan, tuple(sooner.back)) if sooner else None


def _stop(entry: StopEntry | None) -> Stop | None:
    return Stop(tuple(entry.rules), entry.within, entry.naming) if entry else None
