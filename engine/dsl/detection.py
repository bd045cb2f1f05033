"""Compile detections to tests: named items (a pattern; a list: any of it; a map: all of it) and the condition over them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

from msgspec import Struct

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, TextNode
from engine.dsl.grammar import ExpressionError, offset_of, parse
from engine.dsl.named_items import operands
from engine.dsl.patterns import (
    MAX_PATTERN_BYTES,
    NUMBERS,
    Pattern,
    checked_pattern,
    compiled_by_re2,
    named_groups,
    report_refused,
    with_holes,
)
from engine.dsl.report import Report, did_you_mean
from engine.dsl.signs import signs_of_test
from engine.dsl.templates import report_unknown
from engine.dsl.units import in_units
from engine.model.expressions import Expression, Literal
from engine.model.rules import Captured, Item, Test

FIELDS = ("text", "message", "level", "logger", "thread", "exception")
COMPARE_TEXT = ("contains", "startswith", "endswith")
COMPARE_NUMBER = ("gt", "gte", "lt", "lte")
OPERATORS = (*COMPARE_TEXT, "re", *COMPARE_NUMBER, "exists")
MODIFIERS = (*OPERATORS, "all", "nocase", "term")
MAX_COMBINATIONS = 256

_ITEM_NAME = re.compile(r"(?!(?:and|or|not|of|true|false|them)$)[a-z_][a-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?")
_LABEL = re.compile(r"labels\.[a-z][a-z0-9_-]*")

Groups = tuple[tuple[Test, ...], ...]


class Detection(Struct, frozen=True):
    """A compiled detection: its items in file order, the condition over them, and the type of each capture by name."""

    items: tuple[Item, ...]
    condition: Expression
    captures: Mapping[str, str]


def detection(node: MapNode, report: Report) -> Detection:
    """Return the compiled `detection` map; wrong parts are reported and left out."""
    items = tuple(_item(name, value, report) for name, value in node.entries if name.value != "condition")
    captures = _captures(items, node, report)
    return Detection(items, _condition(node, items, captures, report), captures)


def exceptions(node: Node, report: Report) -> Item:
    """Return the item of an override's `except`: a pattern, a map of fields, or a list of these, any of which holds."""
    return Item("except", _any_of(node, report))


def captures_of(tests: tuple[Test, ...]) -> Mapping[str, str]:
    """Return the type of each capture of `tests` by name; for a repeated name, that of the first."""
    types: dict[str, str] = {}
    for captured in (captured for test in tests for captured in test.captures):
        types.setdefault(captured.name, captured.type)
    return types


def _item(name: TextNode, value: Node, report: Report) -> Item:
    if not _ITEM_NAME.fullmatch(name.value):
        help_line = "lower-case letters, digits and underscores; not and, or, not, of, true, false, them"
        report.add(Code.BAD_ID, name, f"`{name.value}` is not a name that a condition can use", help_line)
    groups = _any_of(value, report)
    if len(groups) > MAX_COMBINATIONS:
        message = f"the lists of this item multiply to {len(groups)} combinations; the limit is {MAX_COMBINATIONS}"
        report.add(Code.TOO_MANY_COMBINATIONS, value, message, "use several items, joined in the condition")
    return Item(name.value, groups[:MAX_COMBINATIONS])


def _any_of(value: Node, report: Report) -> Groups:
    match value:
        case TextNode():
            return _pattern_test("text", value, report)
        case ListNode(items=items):
            if not items:
                report.add(Code.EMPTY, value, "the list has no pattern")
            return tuple(group for item in items for group in _any_of(item, report))
        case MapNode():
            return _all_of(value, report)


def _all_of(value: MapNode, report: Report) -> Groups:
    """Return the groups of a map of `field|modifier: value`: every combination of one group of each entry."""
    if not value.entries:
        report.add(Code.EMPTY, value, "the map has no field")
    choices: list[Groups] = []
    total = 1
    for key, expected in value.entries:
        groups = _entry(key, expected, value, report)
        total *= max(1, len(groups))
        if groups and total <= MAX_COMBINATIONS * 4:
            choices.append(groups)
    return tuple(tuple(test for group in choice for test in group) for choice in product(*choices)) if choices else ()


def _entry(key: TextNode, expected: Node, parent: MapNode, report: Report) -> Groups:
    field, *modifiers = key.value.split("|")
    if not _is_field(field):
        _report_unknown_field(field, key, parent, report)
        return ()
    operators = [modifier for modifier in modifiers if modifier in OPERATORS]
    unknown = [modifier for modifier in modifiers if modifier not in MODIFIERS]
    if unknown or len(operators) > 1:
        message = f"unknown modifier `{unknown[0]}`" if unknown else f"`{operators[0]}` and `{operators[1]}` exclude each other"
        help_line = did_you_mean(unknown[0], MODIFIERS) if unknown else "use one of them"
        report.add(Code.UNKNOWN_MODIFIER, key, message, help_line)
        return ()
    operator = operators[0] if operators else "pattern"
    values = expected.items if isinstance(expected, ListNode) else (expected,)
    tests = [_test(field, operator, "nocase" in modifiers, node, report) for node in values]
    groups = [group for groups in tests for group in groups]
    return (tuple(test for group in groups for test in group),) if "all" in modifiers and groups else tuple(groups)


def _is_field(field: str) -> bool:
    return field in FIELDS or _LABEL.fullmatch(field) is not None


def _report_unknown_field(field: str, key: TextNode, parent: MapNode, report: Report) -> None:
    """Report a key that is not a field; a flow map or a key with blanks was probably meant as a pattern."""
    value = parent.entries[0][1]
    is_bare_hole = parent.flow and value == TextNode(value.mark, "", "")  # `{topic}` or `{size:bytes}`
    if " " in field or is_bare_hole:
        help_line = "put `>-` after the item's name and the pattern, indented, on the next line; or quote it"
        report.add(Code.YAML_PLAIN, parent, "YAML takes this unquoted pattern for a map", help_line)
        return
    report.add(Code.UNKNOWN_FIELD, key, f"unknown field `{field}`", did_you_mean(field, (*FIELDS, "labels.<name>")))


def _test(field: str, operator: str, nocase: bool, node: Node, report: Report) -> Groups:
    if not isinstance(node, TextNode):
        report.add(Code.WRONG_KIND, node, "a field is compared with text or a list of texts")
        return ()
    if operator == "pattern":
        return _pattern_test(field, node, report, nocase)
    if operator == "re":
        return _regex_test(field, node, report, nocase)
    if operator in COMPARE_NUMBER and not _NUMBER.fullmatch(node.value):
        report.add(Code.BAD_NUMBER, node, f"`{node.value}` is not a number", f"`{operator}` compares numbers")
        return ()
    if operator == "exists" and node.value not in ("true", "false"):
        report.add(Code.BAD_FLAG, node, f"`{node.value}` is neither true nor false", "write true or false")
        return ()
    if operator in COMPARE_TEXT and not node.value:
        report.add(Code.EMPTY, node, "the text to look for is empty")
        return ()
    literals = (node.value,) if operator in COMPARE_TEXT and not nocase else ()
    signs = signs_of_test(operator, field, node.value)
    return ((Test(field, operator, node.value, literals=literals, nocase=nocase, signs=signs),),)


def _pattern_test(field: str, node: TextNode, report: Report, nocase: bool = False) -> Groups:
    pattern = checked_pattern(node, report, nocase)
    return () if pattern is None else ((pattern_test(field, pattern, nocase),),)


def pattern_test(field: str, pattern: Pattern, nocase: bool = False) -> Test:
    """Return the test that searches `field` for a pattern."""
    signs = signs_of_test("pattern", field, pattern.source, pattern.regex)
    return Test(field, "pattern", pattern.source, pattern.regex, pattern.literals, pattern.captures, nocase, signs)


def _regex_test(field: str, node: TextNode, report: Report, nocase: bool) -> Groups:
    raw, types = with_holes(node.value)
    expression = f"(?i){raw}" if nocase else raw
    too_long = len(node.value.encode()) > MAX_PATTERN_BYTES
    refusal = f"longer than {MAX_PATTERN_BYTES} bytes" if too_long else compiled_by_re2(expression)
    if refusal or not node.value:
        report_refused(node, refusal or "it is empty", report)
        return ()
    captures: tuple[Captured, ...] = named_groups(expression, types)
    signs = signs_of_test("re", field, node.value, expression)
    return ((Test(field, "re", node.value, expression, (), captures, nocase, signs),),)


def _captures(items: tuple[Item, ...], node: MapNode, report: Report) -> Mapping[str, str]:
    types: dict[str, str] = {}
    for item in items:
        for test in (test for group in item.any_of for test in group):
            for captured in test.captures:
                _add_capture(types, captured, item, node, report)
    return types


def _add_capture(types: dict[str, str], captured: Captured, item: Item, node: MapNode, report: Report) -> None:
    first = types.setdefault(captured.name, captured.type)
    if (first in NUMBERS) != (captured.type in NUMBERS):
        message = f"`{captured.name}` is captured as {captured.type} here and as {first} elsewhere"
        report.add(Code.NAME_CLASH, node.key(item.name) or node, message, "give it one type, or two names")


def _condition(node: MapNode, items: tuple[Item, ...], captures: Mapping[str, str], report: Report) -> Expression:
    """Return the condition; one that is missing or wrong is reported and replaced by `false`."""
    text = node.get("condition")
    names = [item.name for item in items]
    if not isinstance(text, TextNode):
        help_line = f"for example: condition: {' and '.join(names[:2]) or 'item'}"
        report.add(Code.MISSING_KEY, text or node, "`detection.condition` is missing or no text", help_line)
        return Literal(False)
    if not names:
        report.add(Code.EMPTY, node, "the detection has no item", "add one: `name: pattern`")
        return Literal(False)
    try:
        expression = parse(text.value, names)
    except ExpressionError as error:
        report.add(error.code, text, error.message, error.help, error.offset, error.length)
        return Literal(False)
    types = {**dict.fromkeys(names, "item"), **captures}
    report_unknown(expression, text.value, 0, text, report, types, Code.UNKNOWN_NAME)
    for name in sorted(operands(expression) & set(names)):
        message = f"`{name}` is an item, true or false, and cannot be compared or calculated with"
        help_line = "give the item another name than the capture" if name in captures else "compare captures"
        report.add(Code.NAME_CLASH, text, message, help_line, offset_of(text.value, name), len(name))
    return in_units(expression, captures)
