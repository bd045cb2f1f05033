"""Why a rule fires on an event or does not: every item of its detection, every part of its condition, on what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.cli.intake import Intake
from engine.cli.rule_tests import narrowed
from engine.codec import plain
from engine.dsl.patterns import HOLE, compile_pattern
from engine.errors import UsageError
from engine.incident import MemoryLedger
from engine.match.checks import Captures, all_of, compile_check
from engine.match.fields import Fields
from engine.match.redact import redactor_of
from engine.model.expressions import UNKNOWN, Binary, Call, Expression, Literal, NameExpression, Unary, evaluate, names
from engine.model.matches import Value
from engine.model.phrases import moment, named
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.redaction import Redaction
from engine.model.rules import Item, Plan, Signature, Test
from engine.parse import assemble, decode, unwrap
from engine.pipeline import replay

_SHOWN = 100  # characters of a text that was found instead
_CLOSE = 0.25  # of one item
_NUMBER = re.compile(r"\d+")


class ItemView(Struct, frozen=True):
    """One item on one event: whether it holds, its captures, and, where it does not, why not (one sentence a test)."""

    name: str
    holds: bool
    captures: Mapping[str, Value]
    why: tuple[str, ...] = ()
    near: float = 0.0


class EventView(Struct, frozen=True):
    """A signature on one event. `parts` are the parts of the condition with their values: true, false or unknown."""

    source: str
    number: int
    text: str
    fires: bool
    items: tuple[ItemView, ...]
    parts: tuple[tuple[str, str], ...]

    @property
    def nearness(self) -> float:
        """How close it came: items that hold count 1, others the share of their pattern that was found."""
        return sum(1.0 if item.holds else item.near for item in self.items)


def explained(signature: Signature, event: LogEvent) -> EventView:
    """Return how `signature` judges `event`; what is shown of it holds no secret."""
    fields, clean = Fields(event), Cleaned(event.text)
    items = tuple(_item(item, fields, clean) for item in signature.items)
    captures: dict[str, Value] = {}
    for item in items:
        captures = {**item.captures, **captures}
    known: dict[str, Value | bool] = {**captures, **{item.name: item.holds for item in items}}
    fires = evaluate(signature.condition, known) is True
    parts = tuple((written(part), clean.part(_said(part, known))) for part in _parts(signature.condition))
    shown = tuple(replace(item, captures=clean.captures(item.captures)) for item in items)
    return EventView(event.source_id, event.number, clean.text, fires, shown, parts)


class Cleaned:
    """The text of an event without its secrets, and what redaction makes of parts of it."""

    def __init__(self, text: str) -> None:
        self._original, self._redact = text, redactor_of(Redaction())
        self.text = self._redact(text)

    def part(self, part: str) -> str:
        """Return a part of the text as it may be shown."""
        return self._redact.part(part, self._original, self.text)

    def captures(self, captures: Captures) -> Captures:
        """Return what was captured as it may be shown."""
        return self._redact.captures(captures, self._original, self.text)


def closest(views: Iterable[EventView], most: int) -> list[EventView]:
    """Return up to `most` events: those on which the rule fires, then those that came closest; alike ones, which differ in
    numbers only, once."""
    ranked = sorted((view for view in views if view.fires or view.nearness >= _CLOSE), key=lambda v: (not v.fires, -v.nearness))
    shapes: dict[str, EventView] = {}
    for view in ranked:
        shapes.setdefault(_NUMBER.sub("0", view.text), view)
    return list(shapes.values())[:most]


def written(expression: Expression) -> str:
    """Return `expression` as text, with the fewest parentheses that keep its meaning clear."""
    match expression:
        case Literal(value):
            return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        case NameExpression(name):
            return name
        case Unary(op, operand):
            return f"{op} {_inner(operand)}" if op == "not" else f"{op}{_inner(operand)}"
        case Binary(op, left, right):
            return f"{_inner(left, op)} {op} {_inner(right, op)}"
        case Call(function, arguments):
            return f"{function}({', '.join(written(argument) for argument in arguments)})"
    raise TypeError(f"not an expression: {expression!r}")


def _inner(expression: Expression, outer: str = "") -> str:
    joins = isinstance(expression, Binary) and expression.op in ("and", "or")
    plain = not isinstance(expression, Binary) or (outer in ("and", "or") and (expression.op == outer or not joins))
    return written(expression) if plain else f"({written(expression)})"


def _parts(expression: Expression) -> Iterator[Expression]:
    """Yield the whole condition, then what `and`, `or` and `not` join in it, down to names and comparisons."""
    yield expression
    match expression:
        case Binary("and" | "or" as op):
            for operand in _operands(expression, op):
                yield from _parts(operand)
        case Unary("not", operand):
            yield from _parts(operand)


def _operands(expression: Expression, op: str) -> Iterator[Expression]:
    """Yield what a chain of `and` or `or` joins; the parser keeps it as a balanced tree."""
    if isinstance(expression, Binary) and expression.op == op:
        yield from (*_operands(expression.left, op), *_operands(expression.right, op))
    else:
        yield expression


def _said(expression: Expression, known: Mapping[str, Any]) -> str:
    value = evaluate(expression, known)
    if value is not UNKNOWN:
        return str(value).lower() if isinstance(value, bool) else str(value)
    missing = sorted(name for name in names(expression) if name not in known)
    return f"unknown: nothing captured {', '.join(missing)}" if missing else "unknown: this cannot be calculated"


def _item(item: Item, fields: Fields, clean: Cleaned) -> ItemView:
    tried: list[tuple[str, float]] = []
    for group in item.any_of:
        found: Captures | None = all_of([compile_check(test) for test in group])(fields)
        if found is not None:
            return ItemView(item.name, True, found)
        tried.extend(_why_not(test, fields, clean) for test in group if compile_check(test)(fields) is None)
    nearest = sorted(tried, key=lambda each: -each[1])
    return ItemView(item.name, False, {}, tuple(sentence for sentence, _ in nearest[:2]), nearest[0][1] if nearest else 0.0)


def _why_not(test: Test, fields: Fields, clean: Cleaned) -> tuple[str, float]:
    """Return a sentence that says why `test` does not hold, and how much of it was found (0 to 1)."""
    values = [value.decode("utf-8", "replace") for value in fields.values(test.field)]
    if not values and test.op != "exists":
        return f"the event has no {test.field}", 0.0
    if test.op == "pattern":
        return max((_pattern(test, value, clean) for value in values), key=lambda each: each[1])
    wanted = {"re": f"matches {test.value}", "exists": "is there" if test.value == "true" else "is absent"}
    said = wanted.get(test.op, f"{test.op} {test.value}")
    return f"no {test.field} that {said}; it is: {_cut(' / '.join(map(clean.part, values))) or '(nothing)'}", 0.0


def _pattern(test: Test, text: str, clean: Cleaned) -> tuple[str, float]:
    """Return how far the pattern was found in `text`: its longest beginning that matches, and what comes there instead."""
    cuts = _cuts(test.value)
    low, high = 0, len(cuts) - 1  # cuts[0] is the empty beginning, which matches; the whole pattern does not
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if _found(test, cuts[middle], text) else (low, middle)
    begun = test.value[: cuts[low]]
    hit = _found(test, cuts[low], text) if begun.strip() else None
    if hit is None:
        return f"nothing like `{_cut(test.value)}` in the {test.field}", 0.0
    wanted = test.value[cuts[low] :].strip().split()[0]
    rest = text[hit.end() :].partition("\n")[0].strip()
    follows = _cut(clean.part(rest)) or "the end"
    share = cuts[low] / max(1, len(test.value))
    return f"found as far as `{_cut(begun.strip())}`; `{wanted}` should follow, but what follows is: {follows}", share


def _cuts(pattern: str) -> Sequence[int]:
    """Return where `pattern` can be cut: before and after each word, never inside a hole."""
    holes = [hole.span() for hole in HOLE.finditer(pattern)]
    borders = [index for index, char in enumerate(pattern) if char.isspace()] + [edge for hole in holes for edge in hole]
    inside = {index for start, end in holes for index in range(start + 1, end)}
    return sorted({0, *(border for border in borders if border not in inside), len(pattern)})


def _found(test: Test, length: int, text: str) -> Any:
    flags = "(?i)" if test.nocase else ""
    return re2.search(flags + compile_pattern(test.value[:length].rstrip()).regex, text)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."


class Explanation(Struct, frozen=True):
    """How one rule judges a log. For a correlation, `views` are those of the rules it works on, and `alerts` what it makes of
    them."""

    rule: str
    views: Mapping[str, tuple[EventView, ...]]
    alerts: tuple[str, ...] = ()
    is_correlation: bool = False

    @property
    def fires(self) -> bool:
        """Whether the rule fires: on an event, or, a correlation, at all."""
        return bool(self.alerts) if self.is_correlation else any(view.fires for each in self.views.values() for view in each)

    def lines(self, most: int) -> Iterator[str]:
        """Yield the explanation as text, with up to `most` events a rule."""
        for id_, views in self.views.items():
            hits, shown = sum(view.fires for view in views), closest(views, most)
            yield f"{id_} fires on {hits} of {len(views)} events" + ("" if hits else _none(shown))
            for view in shown:
                yield from ("", *_view_lines(view))
            yield ""
        if self.is_correlation:
            yield f"{self.rule}: " + (f"{len(self.alerts)} of its alerts hold or held" if self.alerts else "it never holds")
            yield from (f"  {alert}" for alert in self.alerts[:most])

    def as_json(self, most: int) -> Mapping[str, Any]:
        """Return the explanation for programs, with up to `most` events a rule."""
        rules = {
            id_: {
                "events": len(views),
                "fires_on": sum(v.fires for v in views),
                "shown": plain(closest(views, most)),
            }
            for id_, views in self.views.items()
        }
        return {"rule": self.rule, "fires": self.fires, "rules": rules, "alerts": list(self.alerts)}


def explain(id_: str, plan: Plan, files: Sequence[str]) -> Explanation:
    """Return how rule `id_` of `plan` judges the logs in `files`. Raises UsageError when none of them can be read."""
    intake = Intake(files, {})
    lines = list(intake.lines())
    if not any(isinstance(line, RawLine) for line in lines):
        raise UsageError("; ".join(intake.notes) or "there is no line to explain the rule on")
    read = decode(assemble(unwrap(lines, plan.formats), plan.formats), plan.formats)
    events = [event for event in read if isinstance(event, LogEvent)]
    signatures = {each.rule.id: each for each in plan.signatures}
    if id_ in signatures:
        return Explanation(id_, {id_: tuple(explained(signatures[id_], event) for event in events)})
    alone = narrowed(plan, id_)
    views = {each.rule.id: tuple(explained(each, event) for event in events) for each in alone.signatures}
    return Explanation(id_, views, tuple(_alerts(id_, alone, lines)), True)


def _alerts(id_: str, plan: Plan, lines: Sequence[RawLine | Progress]) -> Iterator[str]:
    """Yield a line for each alert of the correlation `id_`, pending ones too."""
    ledger = MemoryLedger()
    for _ in replay(lines, plan, ledger):
        pass
    for scope in {line.labels.get("cluster", "default") for line in lines if isinstance(line, RawLine)}:
        for key, alerts in ledger.alerts(scope).items():
            if key[1] == id_:
                yield from (f"{a.status} {named(a.labels)} since {moment(a.starts_at)}, count {a.count}" for a in alerts)


def _none(shown: Sequence[EventView]) -> str:
    return "; these came closest:" if shown else "; none comes close"


def _view_lines(view: EventView) -> Iterator[str]:
    first = view.text.split("\n")
    yield f"{view.source}:{view.number}  {_cut(first[0])}" + (f"  (+{len(first) - 1} lines)" if len(first) > 1 else "")
    for item in view.items:
        captures = ", ".join(f"{name}={value}" for name, value in item.captures.items())
        yield f"  {'yes' if item.holds else 'no ':3} {item.name}" + (f": {captures}" if captures else "")
        yield from (f"        {sentence}" for sentence in item.why)
    (whole, value), *parts = view.parts
    yield f"  condition  {whole}: {value}"
    items = {item.name for item in view.items}
    yield from (f"    {text}: {value}" for text, value in parts if text not in items)
