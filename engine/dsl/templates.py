"""Templates of titles, causes and fixes: text with `{name}`, `{name:unit}`, `{name.max}`, `{name|instead}`, `{= expression}`.

`{name|other|instead}` takes the first of the names that has a value. `{name|}` writes nothing when there is none, and in round
brackets the part between commas around it disappears too. Any other brace is literal. In a command or a setting
every hole also has the value type whose characters it accepts (`Hole.charset`), so that log text cannot become shell text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from engine.dsl.codes import Code
from engine.dsl.document import Node, TextNode
from engine.dsl.grammar import ExpressionError, offset_of, parse
from engine.dsl.named_items import operands, with_items
from engine.dsl.patterns import NUMBERS
from engine.dsl.report import Report, did_you_mean
from engine.dsl.units import in_units
from engine.model.expressions import Binary, Call, Expression, Literal, NameExpression, items_in, names
from engine.model.rules import HOST, OMITTED, Hole, Template

UNITS = ("human", "bytes", "ms", HOST)
OF_NUMBERS = ("min", "max", "first", "last", "sum")
SUFFIXES = ("all", *OF_NUMBERS)
# the names that every template may use besides captures and labels -> value type
CONTEXT: Mapping[str, str] = {
    "count": "int",
    "first_seen": "time",
    "last_seen": "time",
    "duration_s": "num",
    "duration": "word",
    "brokers": "list",
    "bootstrap": "hosts",
    "bootstrap_controller": "hosts",
    "connect_url": "url",
}
EMPTY = Template(("",))

_HOLE = re.compile(
    r"\\[{}]"
    r"|\{(?P<name>[a-z][a-z0-9_]*(?:\.(?:all|min|max|first|last|sum))?)(?::(?P<unit>human|bytes|ms|host))?"
    r"(?P<others>(?:\|[a-z][a-z0-9_]*(?=\|))*)(?:\|(?P<instead>[^{}|\n]*))?\}"
    r"|\{=(?P<expression>(?:'[^'\n]*'|\"[^\"\n]*\"|[^{}'\"])*)\}"
)
_ALMOST = re.compile(r"(?<![\\$])\{([a-z][A-Za-z0-9_]*)(?:(?:[.:|][A-Za-z]+)?\}|\|)|\{=")


def template(node: TextNode, report: Report, types: Mapping[str, str], command: bool = False) -> Template:
    """Return the compiled template; holes that do not compile are reported and left out.

    Args:
        types: value type by name of every capture and label that may fill a hole; CONTEXT is added.
        command: the text is part of a command, a setting or a file that a reader pastes.
    """
    parts: list[str | Hole] = []
    position = 0
    for match in _HOLE.finditer(node.value):
        parts.append(node.value[position : match.start()] + (match[0][1:] if match[0][0] == "\\" else ""))
        hole = _hole(match, node, report, {**CONTEXT, **types}, command) if match[0][0] == "{" else None
        if hole is not None:
            parts.append(hole)
        position = match.end()
    parts.append(node.value[position:])
    _report_almost_holes(node, report)
    return Template(_merged(parts))


def holes(text: str) -> frozenset[str]:
    """Return what the holes of a template name, without the words that replace a missing value."""
    matches = (match for match in _HOLE.finditer(text) if match[0][0] == "{")
    return frozenset(
        "|".join([match["name"] or match["expression"].strip(), match["unit"] or "", match["others"] or ""])
        for match in matches
    )


def outline(text: str) -> str:
    """Return the text of a template for a list of rules: `{name|instead}` shortened to `{name}`."""
    return _HOLE.sub(lambda match: f"{{{match['name']}}}" if match["instead"] is not None else match[0], text)


def _hole(match: re.Match[str], node: TextNode, report: Report, types: Mapping[str, str], command: bool) -> Hole | None:
    text, start = (match["name"], match.start("name")) if match["name"] else (match["expression"], match.start("expression"))
    try:
        expression = NameExpression(text) if match["name"] else parse(text)
    except ExpressionError as error:
        report.add(error.code, node, error.message, error.help, start + error.offset, error.length)
        return None
    report_unknown(expression, text, start, node, report, types, Code.UNFILLED_HOLE)
    others_text = match["others"] or ""
    others = tuple(map(NameExpression, others_text.split("|")[1:]))
    for other in others:
        report_unknown(other, others_text, match.start("others"), node, report, types, Code.UNFILLED_HOLE)
    charset = ("host" if match["unit"] == HOST else _charset(expression, types)) if command else ""
    instead = OMITTED if match["instead"] == "" else match["instead"] or ""
    if command and instead:
        message = f"`{match[0]}` is part of a command or a setting, where words must not replace a missing value"
        report.add(Code.UNFILLED_HOLE, node, message, f"write {{{text}}}", match.start(), len(match[0]))
    return Hole(in_units(expression, types), match["unit"] or "", charset, match[0], instead, others)


def expression(
    node: Node, report: Report, types: Mapping[str, str], items: Set[str] = frozenset(), captures: Set[str] = frozenset()
) -> Expression | None:
    """Return the expression in `node` over the names of `types`; None for a list, a map, or a wrong expression, which is
    reported.

    Args:
        items: the detection items that it may name, as true or false. An item hides a label of its name, and a capture of
            another rule.
        captures: the captures of the rule itself; a name that is an item too must not stand alone.
    """
    if not isinstance(node, TextNode):
        return None
    try:
        parsed = parse(node.value, sorted(items))
    except ExpressionError as error:
        report.add(error.code, node, error.message, error.help, error.offset, error.length)
        return None
    resolved = with_items(parsed, items)
    _report_clashes(parsed, resolved, node, report, items - types.keys(), captures)
    report_unknown(resolved, node.value, 0, node, report, {**dict.fromkeys(items, "item"), **types}, Code.UNKNOWN_NAME)
    return in_units(resolved, types)


def _report_clashes(
    parsed: Expression, resolved: Expression, node: TextNode, report: Report, items_only: Set[str], captures: Set[str]
) -> None:
    """Report each item that is used as a value, and each name that may mean an item or a capture of the same rule.

    Args:
        items_only: the items whose name nothing else has.
    """
    for name in sorted(operands(parsed) & items_only):
        message = f"`{name}` is an item, true or false, and cannot be compared, calculated with or passed to a function"
        help_line = f"write `{name}` alone, or `not {name}`"
        report.add(Code.NAME_CLASH, node, message, help_line, offset_of(node.value, name), len(name))
    for name in sorted(items_in(resolved) & captures):
        message = f"`{name}` is an item and a capture of this rule, and either could be meant"
        help_line = f"give the item another name; the capture is meant in `known({name})` and in comparisons"
        report.add(Code.NAME_CLASH, node, message, help_line, offset_of(node.value, name), len(name))


def report_unknown(
    expression: Expression, text: str, start: int, node: TextNode, report: Report, types: Mapping[str, str], code: Code
) -> None:
    """Report each name of `expression` that is not in `types`, and each text with a suffix of numbers, such as `.max`.

    `text` is the source of the expression; it begins at character `start` of `node`.
    """
    for name in sorted(names(expression)):
        base, _, suffix = name.partition(".")
        if base not in types:
            at = start + offset_of(text, name)
            message = f"nothing fills `{base}`" if code is Code.UNFILLED_HOLE else f"`{base}` is neither an item nor a capture"
            report.add(code, node, message, did_you_mean(base, types), at, len(base))
        elif suffix in OF_NUMBERS and types[base] not in NUMBERS:
            help_line = f"write {base}, or {base}.all for all its values"
            at = start + offset_of(text, name)
            report.add(code, node, f"`.{suffix}` needs numbers, and `{base}` is text", help_line, at, len(name))


def _charset(expression: Expression, types: Mapping[str, str]) -> str:
    match expression:
        case NameExpression(name):
            base, _, suffix = name.partition(".")
            return "list" if suffix == "all" else types.get(base, "word")
        case Literal(str()) | Call("lower", _):
            return "word"
        case Call("without", _):
            return "list"
        case Call("reassignment", _):
            return "json"
        case Binary() | Literal() | Call():
            return "num"
    return "num"


def _merged(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    """Return `parts` with adjacent texts joined and empty ones removed; never empty."""
    joined: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part:
            joined.append(part)
    return tuple(joined) or ("",)


def _report_almost_holes(node: TextNode, report: Report) -> None:
    for match in _ALMOST.finditer(node.value):
        if _HOLE.match(node.value, match.start()):
            continue
        if match[1] is None:
            help_line = "close it with `}`; braces inside an expression must be quoted"
            report.add(Code.EXPRESSION_SYNTAX, node, "the expression after `{=` does not end", help_line, match.start(), 2)
        else:
            units, suffixes = "|".join(UNITS), "|".join(SUFFIXES)
            help_line = (
                f"write {{name}}, {{name:{units}}}, {{name.{suffixes}}}, {{name|words}} or {{name|}}; or \\{{ to mean the brace"
            )
            message = f"`{match[0]}` is not a hole and is taken literally"
            report.add(Code.LOOKS_LIKE_HOLE, node, message, help_line, match.start(), len(match[0]))
