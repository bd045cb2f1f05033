"""Explain why a rule fires on an event or not: the result of every item of its detection and of every part of its condition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.cli.authoring.windows_view import CountedOccurrence, correlation_lines, occurrences_of
from engine.cli.intake import Intake
from engine.cli.rule_tests import lines_of, narrow_plan
from engine.codec import plain
from engine.dsl.patterns import HOLE, compile_pattern
from engine.dsl.rule_test import RuleTest
from engine.errors import UsageError
from engine.incident import MemoryLedger
from engine.match.checks import Captures, all_of, compile_check
from engine.match.fields import Fields
from engine.match.redact import redactor_of
from engine.model.expressions import UNKNOWN, Binary, Call, Expression, Literal, NameExpression, Unary, evaluate, names
from engine.model.incidents import Alert
from engine.model.matches import Match, Value
from engine.model.phrases import moment, named
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.redaction import Redaction
from engine.model.rules import Correlation, Item, Plan, Signature, Test
from engine.parse import assemble, decode, unwrap
from engine.pipeline import replay

_SHOWN = 100  # characters that are printed of a text
_MISSED_SHOWN = 4  # items that do not hold, of an event
_MIN_NEARNESS = 0.25  # of an event that is printed though the rule does not fire on it
_NUMBER = re.compile(r"\d+")


class ItemView(Struct, frozen=True):
    """The result of one item on one event.

    Attributes:
        captures: redacted; empty when the item does not hold.
        why: when the item does not hold, a sentence for each of its nearest tests.
        near: when it does not hold, the share of the nearest test that was found (0 to 1).
    """

    name: str
    holds: bool
    captures: Mapping[str, Value]
    why: tuple[str, ...] = ()
    near: float = 0.0


class EventView(Struct, frozen=True):
    """The result of a signature on one event, redacted.

    Attributes:
        parts: the whole condition, then its parts, each as text with its value: true, false or unknown.
    """

    source: str
    number: int
    text: str
    fires: bool
    items: tuple[ItemView, ...]
    parts: tuple[tuple[str, str], ...]

    @property
    def nearness(self) -> float:
        """How near the signature was to firing: the sum over the items of 1 for one that holds, else of its `near`."""
        return sum(1.0 if item.holds else item.near for item in self.items)


def judge_event(signature: Signature, event: LogEvent) -> EventView:
    """Return the result of `signature` on `event`, redacted."""
    fields, redacted = Fields(event), RedactedEvent(event.text)
    items = tuple(_item(item, fields, redacted) for item in signature.items)
    captures: dict[str, Value] = {}
    for item in items:
        captures = {**item.captures, **captures}
    values: dict[str, Value | bool] = {**captures, **{item.name: item.holds for item in items}}
    fires = evaluate(signature.condition, values) is True
    parts = tuple((expression_text(part), redacted.part(_value_text(part, values))) for part in _parts(signature.condition))
    shown = tuple(replace(item, captures=redacted.captures(item.captures)) for item in items)
    return EventView(event.source_id, event.number, redacted.text, fires, shown, parts)


class RedactedEvent:
    """The redacted text of an event, and the redaction of parts of it."""

    def __init__(self, text: str) -> None:
        self._original, self._redact = text, redactor_of(Redaction())
        self.text = self._redact(text)

    def part(self, part: str) -> str:
        """Return a part of the text, redacted as in the whole text."""
        return self._redact.part(part, self._original, self.text)

    def captures(self, captures: Captures) -> Captures:
        """Return captures of the event, redacted as in the whole text."""
        return self._redact.captures(captures, self._original, self.text)


def closest(views: Iterable[EventView], limit: int) -> list[EventView]:
    """Return at most `limit` events: first those on which the rule fires, then the nearest ones. Of events that differ in
    numbers only there is one."""
    ranked = sorted(
        (view for view in views if view.fires or view.nearness >= _MIN_NEARNESS), key=lambda v: (not v.fires, -v.nearness)
    )
    shapes: dict[str, EventView] = {}
    for view in ranked:
        shapes.setdefault(_NUMBER.sub("0", view.text), view)
    return list(shapes.values())[:limit]


def expression_text(expression: Expression) -> str:
    """Return `expression` as text, with the fewest parentheses that keep its meaning clear."""
    match expression:
        case Literal(value):
            return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        case NameExpression(name):
            return name
        case Unary(op, operand):
            return f"{op} {_operand_text(operand)}" if op == "not" else f"{op}{_operand_text(operand)}"
        case Binary(op, left, right):
            return f"{_operand_text(left, op)} {op} {_operand_text(right, op)}"
        case Call(function, arguments):
            return f"{function}({', '.join(expression_text(argument) for argument in arguments)})"
    raise TypeError(f"not an expression: {expression!r}")


def _operand_text(expression: Expression, outer: str = "") -> str:
    joins = isinstance(expression, Binary) and expression.op in ("and", "or")
    plain = not isinstance(expression, Binary) or (outer in ("and", "or") and (expression.op == outer or not joins))
    return expression_text(expression) if plain else f"({expression_text(expression)})"


def _parts(expression: Expression) -> Iterator[Expression]:
    """Yield the whole condition, then the operands of `and`, `or` and `not` in it, down to names and comparisons."""
    yield expression
    match expression:
        case Binary("and" | "or" as op):
            for operand in _operands(expression, op):
                yield from _parts(operand)
        case Unary("not", operand):
            yield from _parts(operand)


def _operands(expression: Expression, op: str) -> Iterator[Expression]:
    """Yield the operands of a chain of `and` or `or`, which the parser stores as a balanced tree."""
    if isinstance(expression, Binary) and expression.op == op:
        yield from (*_operands(expression.left, op), *_operands(expression.right, op))
    else:
        yield expression


def _value_text(expression: Expression, values: Mapping[str, Any]) -> str:
    value = evaluate(expression, values)
    if value is not UNKNOWN:
        return str(value).lower() if isinstance(value, bool) else str(value)
    missing = sorted(name for name in names(expression) if name not in values)
    return f"unknown: nothing captured {', '.join(missing)}" if missing else "unknown: this cannot be calculated"


def _item(item: Item, fields: Fields, redacted: RedactedEvent) -> ItemView:
    failures: list[tuple[str, float]] = []
    for group in item.any_of:
        captures: Captures | None = all_of([compile_check(test) for test in group])(fields)
        if captures is not None:
            return ItemView(item.name, True, captures)
        failures.extend(_why_not(test, fields, redacted) for test in group if compile_check(test)(fields) is None)
    nearest = sorted(failures, key=lambda failure: -failure[1])
    return ItemView(item.name, False, {}, tuple(sentence for sentence, _ in nearest[:2]), nearest[0][1] if nearest else 0.0)


def _why_not(test: Test, fields: Fields, redacted: RedactedEvent) -> tuple[str, float]:
    """Return a sentence about why `test` does not hold, and the share of it that was found (0 to 1)."""
    values = [value.decode("utf-8", "replace") for value in fields.values(test.field)]
    if not values and test.op != "exists":
        return f"the event has no {test.field}", 0.0
    if test.op == "pattern":
        return max((_pattern(test, value, redacted) for value in values), key=lambda result: result[1])
    expectations = {"re": f"matches {test.value}", "exists": "is there" if test.value == "true" else "is absent"}
    expectation = expectations.get(test.op, f"{test.op} {test.value}")
    return (
        f"no {test.field} that {expectation}; it is: {_shortened(' / '.join(map(redacted.part, values))) or '(nothing)'}",
        0.0,
    )


def _pattern(test: Test, text: str, redacted: RedactedEvent) -> tuple[str, float]:
    """Return a sentence with the longest prefix of the pattern that matches `text` and the text that follows instead, and the
    prefix's share of the pattern (0 to 1)."""
    cuts = _cut_positions(test.value)
    low, high = 0, len(cuts) - 1  # cuts[0] is the empty prefix, which matches; the whole pattern does not
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if _search(test, cuts[middle], text) else (low, middle)
    prefix = test.value[: cuts[low]]
    hit = _search(test, cuts[low], text) if prefix.strip() else None
    if hit is None:
        return f"nothing like `{_shortened(test.value)}` in the {test.field}", 0.0
    expected_word = test.value[cuts[low] :].strip().split()[0]
    rest = text[hit.end() :].partition("\n")[0].strip()
    follows = _shortened(redacted.part(rest)) or "the end"
    share = cuts[low] / max(1, len(test.value))
    return (
        f"found as far as `{_shortened(prefix.strip())}`; `{expected_word}` should follow, but what follows is: {follows}",
        share,
    )


def _cut_positions(pattern: str) -> Sequence[int]:
    """Return the positions at which `pattern` can be cut, sorted: before and after each word, never inside a hole."""
    holes = [hole.span() for hole in HOLE.finditer(pattern)]
    borders = [index for index, char in enumerate(pattern) if char.isspace()] + [edge for hole in holes for edge in hole]
    inside = {index for start, end in holes for index in range(start + 1, end)}
    return sorted({0, *(border for border in borders if border not in inside), len(pattern)})


def _search(test: Test, length: int, text: str) -> Any:
    flags = "(?i)" if test.nocase else ""
    return re2.search(flags + compile_pattern(test.value[:length].rstrip()).regex, text)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."


class Explanation(Struct, frozen=True):
    """The results of one rule on a log.

    Attributes:
        views: by rule id the results on each event: of the rule itself, or of the signatures that a correlation uses.
        alerts: a line for each alert of a correlation.
        windows: of a correlation lines on what it counts, the nearest windows, and what was missing there.
        counted: the rules that a correlation counts, and those that correlations among them count.
    """

    rule: str
    views: Mapping[str, tuple[EventView, ...]]
    alerts: tuple[str, ...] = ()
    is_correlation: bool = False
    windows: tuple[str, ...] = ()
    counted: frozenset[str] = frozenset()

    @property
    def fires(self) -> bool:
        """Whether a signature fires on an event, or a correlation has an alert."""
        return bool(self.alerts) if self.is_correlation else any(view.fires for views in self.views.values() for view in views)

    def lines(self, limit: int) -> Iterator[str]:
        """Yield the explanation as lines of text, with up to `limit` events a rule: of a correlation its result, then the rules
        that it counts; of others only how often they fire."""
        if self.is_correlation:
            yield f"{self.rule}: " + (f"{len(self.alerts)} of its alerts hold or held" if self.alerts else "it never holds")
            yield from (f"  {alert}" for alert in self.alerts[:limit])
            yield from self.windows
        for id_, views in self.views.items():
            if not self.is_correlation or id_ in self.counted:
                yield from ([""] if self.is_correlation else [])
                yield from _rule_lines(id_, views, limit)
        yield from self._related_lines()

    def _related_lines(self) -> Iterator[str]:
        """Yield what is known of the rules that a correlation has to do with and does not count."""
        related = {id_: views for id_, views in self.views.items() if self.is_correlation and id_ not in self.counted}
        firing = {id_: hits for id_, views in related.items() if (hits := sum(view.fires for view in views))}
        if related:
            yield ""
            yield f"of {len(related)} rules that it has to do with and does not count {len(firing) or 'none'} fire:"
            yield from (f"  {id_} on {hits} of {len(related[id_])} events" for id_, hits in firing.items())
            yield "  tocsin rules explain ID explains one"

    def as_json(self, limit: int) -> Mapping[str, Any]:
        """Return the explanation as a JSON value, with up to `limit` events a rule."""
        rules = {
            id_: {
                "events": len(views),
                "fires_on": sum(v.fires for v in views),
                "shown": plain(closest(views, limit)),
            }
            for id_, views in self.views.items()
        }
        result = {"rule": self.rule, "fires": self.fires, "rules": rules, "alerts": list(self.alerts)}
        return {**result, "windows": list(self.windows)} if self.is_correlation else result


def explain(id_: str, plan: Plan, files: Sequence[str]) -> Explanation:
    """Return the results of rule `id_` of `plan` on the logs in `files`. Raises UsageError when they have no line to read."""
    intake = Intake(files, {})
    lines = list(intake.lines())
    if not any(isinstance(line, RawLine) for line in lines):
        raise UsageError("; ".join(intake.notes) or "there is no line to explain the rule on")
    return explained(id_, plan, lines)


def explained(id_: str, plan: Plan, lines: Sequence[RawLine | Progress]) -> Explanation:
    """Return the results of rule `id_` of `plan` on `lines`."""
    read = decode(assemble(unwrap(lines, plan.formats), plan.formats), plan.formats)
    events = [event for event in read if isinstance(event, LogEvent)]
    signatures = {signature.rule.id: signature for signature in plan.signatures}
    if id_ in signatures:
        return Explanation(id_, {id_: tuple(judge_event(signatures[id_], event) for event in events)})
    narrowed_plan = narrow_plan(plan, id_)
    views = {
        signature.rule.id: tuple(judge_event(signature, event) for event in events) for signature in narrowed_plan.signatures
    }
    replayed = _Replayed(narrowed_plan, lines)
    windows = tuple(replayed.windows(id_))
    counted = _counted_below(id_, {c.rule.id: c for c in narrowed_plan.correlations})
    return Explanation(id_, views, tuple(replayed.alert_lines(id_)), True, windows, counted)


def counted_by(correlation: Correlation) -> frozenset[str]:
    """Return the rules that a correlation counts."""
    return frozenset((*correlation.rules, *correlation.expect))


def _counted_below(id_: str, correlations: Mapping[str, Correlation]) -> frozenset[str]:
    """Return the rules that a correlation counts, and those that correlations among them count."""
    counted = counted_by(correlations[id_])
    return counted.union(*(_counted_below(rule, correlations) for rule in counted & correlations.keys()))


def explained_test(test: RuleTest, plan: Plan) -> Explanation:
    """Return the results of the rule of `test` on its logs, or on the lines of its timeline."""
    return explained(test.rule_id, plan, list(lines_of(test)))


class _Replayed:
    """The matches and alerts of a plan on lines, pending alerts included."""

    def __init__(self, plan: Plan, lines: Sequence[RawLine | Progress]) -> None:
        self._plan, self._ledger = plan, MemoryLedger()
        self._matches: list[Match] = []
        for _ in replay(lines, plan, self._ledger, lambda _event, matches: self._matches.extend(matches)):
            pass
        self._scopes = sorted({line.labels.get("cluster", "default") for line in lines if isinstance(line, RawLine)})

    def alert_lines(self, id_: str) -> Iterator[str]:
        """Yield a line for each alert of the correlation `id_`."""
        for a in self._alerts(id_):
            yield f"{a.status} {named(a.labels)} since {moment(a.starts_at)}, count {a.count}"

    def windows(self, id_: str) -> Iterator[str]:
        """Yield lines on the windows of the correlation `id_`."""
        correlations = {correlation.rule.id: correlation for correlation in self._plan.correlations}
        correlation = correlations[id_]
        counted = counted_by(correlation)
        matches = [match for match in self._matches if match.rule_id in counted]
        nested = [
            CountedOccurrence(rule, alert.starts_at, dict(alert.labels))
            for rule in sorted(counted & correlations.keys())
            for alert in self._alerts(rule)
        ]
        occurrences = sorted([*occurrences_of(matches), *nested], key=lambda occurrence: occurrence.at)
        condition = expression_text(correlation.condition) if correlation.condition is not None else ""
        undated = sum(not match.dated for match in matches)
        collapse_s = {signature.rule.id: signature.collapse_s for signature in self._plan.signatures}
        yield from correlation_lines(correlation, condition, occurrences, undated, collapse_s)

    def _alerts(self, id_: str) -> Iterator[Alert]:
        for scope in self._scopes:
            for key, alerts in self._ledger.alerts(scope).items():
                if key[1] == id_:
                    yield from alerts


def _rule_lines(id_: str, views: Sequence[EventView], limit: int) -> Iterator[str]:
    hits, shown = sum(view.fires for view in views), closest(views, limit)
    yield f"{id_} fires on {hits} of {len(views)} events" + ("" if hits else _no_hits(shown))
    for view in shown:
        yield from ("", *_view_lines(view))


def _no_hits(shown: Sequence[EventView]) -> str:
    return "; these came closest:" if shown else "; none comes close"


def _view_lines(view: EventView) -> Iterator[str]:
    first = view.text.split("\n")
    yield f"{view.source}:{view.number}  {_shortened(first[0])}" + (f"  (+{len(first) - 1} lines)" if len(first) > 1 else "")
    missed = [item for item in view.items if not item.holds]
    nearest = sorted(missed, key=lambda item: -item.near)[:_MISSED_SHOWN]
    for item in (item for item in view.items if item.holds or item in nearest):
        captures = ", ".join(f"{name}={value}" for name, value in item.captures.items())
        yield f"  {'yes' if item.holds else 'no ':3} {item.name}" + (f": {captures}" if captures else "")
        yield from (f"        {sentence}" for sentence in item.why)
    if len(missed) > len(nearest):
        yield f"  no  and {len(missed) - len(nearest)} more items, which are further from it"
    (whole, value), *parts = view.parts
    yield f"  condition  {whole}: {value}"
    items = {item.name for item in view.items}
    yield from (f"    {text}: {value}" for text, value in parts if text not in items)
