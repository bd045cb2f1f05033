"""Templates of titles, causes and fixes: `{name}`, `{name:unit}`, `{name.max}`, `{name|instead}` and `{= expression}` in text.

`{name|other|instead}` is filled by the first of the names that has a value. Braces that are not exactly one of these are
literal. Where a template is part of a command or a setting, every hole also carries the value type whose characters it may hold
(`Hole.charset`), so that log text cannot become shell text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.dsl.codes import Code
from engine.dsl.document import Node, TextNode
from engine.dsl.grammar import ExpressionError, offset_of, parse
from engine.dsl.patterns import NUMBERS
from engine.dsl.report import Report, did_you_mean
from engine.dsl.units import in_units
from engine.model.expressions import Binary, Call, Expression, Literal, NameExpression, names
from engine.model.rules import Hole, Template

UNITS = ("human", "bytes", "ms")
OF_NUMBERS = ("min", "max", "first", "last", "sum")
SUFFIXES = ("all", *OF_NUMBERS)
# what every template may use besides captures and labels: name -> value type
CONTEXT: Mapping[str, str] = {
    "count": "int",
    "first_seen": "time",
    "last_seen": "time",
    "duration_s": "num",
    "duration": "word",
    "brokers": "list",
    "bootstrap": "hosts",
    "connect_url": "url",
}
EMPTY = Template(("",))

_HOLE = re.compile(
    r"\\[{}]"
    r"|\{(?P<name>[a-z][a-z0-9_]*(?:\.(?:all|min|max|first|last|sum))?)(?::(?P<unit>human|bytes|ms))?"
    r"(?P<others>(?:\|[a-z][a-z0-9_]*(?=\|))*)(?:\|(?P<instead>[^{}|\n]+))?\}"
    r"|\{=(?P<expression>(?:'[^'\n]*'|\"[^\"\n]*\"|[^{}'\"])*)\}"
)
_ALMOST = re.compile(r"(?<![\\$])\{([a-z][A-Za-z0-9_]*)(?:(?:[.:|][A-Za-z]+)?\}|\|)|\{=")


def template(node: TextNode, report: Report, known: Mapping[str, str], command: bool = False) -> Template:
    """Return the compiled template; what cannot be compiled is reported and left out.

    Args:
        known: value type by name of everything that may be filled in, without context values.
        command: the text is part of a command, a setting or a file that a reader pastes.
    """
    parts: list[str | Hole] = []
    position = 0
    for found in _HOLE.finditer(node.value):
        parts.append(node.value[position : found.start()] + (found[0][1:] if found[0][0] == "\\" else ""))
        hole = _hole(found, node, report, {**CONTEXT, **known}, command) if found[0][0] == "{" else None
        if hole is not None:
            parts.append(hole)
        position = found.end()
    parts.append(node.value[position:])
    _report_almost_holes(node, report)
    return Template(_merged(parts))


def outline(text: str) -> str:
    """Return the text of a template for a list of rules: its holes without the words that stand for missing values."""
    return _HOLE.sub(lambda found: f"{{{found['name']}}}" if found["instead"] else found[0], text)


def _hole(found: re.Match[str], node: TextNode, report: Report, known: Mapping[str, str], command: bool) -> Hole | None:
    text, start = (found["name"], found.start("name")) if found["name"] else (found["expression"], found.start("expression"))
    try:
        expression = NameExpression(text) if found["name"] else parse(text)
    except ExpressionError as error:
        report.add(error.code, node, error.message, error.help, start + error.offset, error.length)
        return None
    report_unknown(expression, text, start, node, report, known, Code.UNFILLED_HOLE)
    more = found["others"] or ""
    others = tuple(map(NameExpression, more.split("|")[1:]))
    for other in others:
        report_unknown(other, more, found.start("others"), node, report, known, Code.UNFILLED_HOLE)
    charset = _charset(expression, known) if command else ""
    instead = found["instead"] or ""
    if command and instead:
        message = f"`{found[0]}` is part of a command or a setting: what is missing there has to stand out"
        report.add(Code.UNFILLED_HOLE, node, message, f"write {{{text}}}", found.start(), len(found[0]))
    return Hole(in_units(expression, known), found["unit"] or "", charset, found[0], instead, others)


def expression(node: Node, report: Report, known: Mapping[str, str]) -> Expression | None:
    """Return the expression that `node` spells, over the names of `known`; None, reported unless it is a list or a map, when it
    spells none."""
    if not isinstance(node, TextNode):
        return None
    try:
        made = parse(node.value)
    except ExpressionError as error:
        report.add(error.code, node, error.message, error.help, error.offset, error.length)
        return None
    report_unknown(made, node.value, 0, node, report, known, Code.UNKNOWN_NAME)
    return in_units(made, known)


def report_unknown(
    expression: Expression, text: str, start: int, node: TextNode, report: Report, known: Mapping[str, str], code: Code
) -> None:
    """Report each name of `expression` (spelled by `text`, which begins at character `start` of `node`) not in `known`, and
    each that asks text for what numbers have."""
    for name in sorted(names(expression)):
        base, _, suffix = name.partition(".")
        if base not in known:
            at = start + offset_of(text, name)
            message = f"nothing fills `{base}`" if code is Code.UNFILLED_HOLE else f"`{base}` is neither an item nor a capture"
            report.add(code, node, message, did_you_mean(base, known), at, len(base))
        elif suffix in OF_NUMBERS and known[base] not in NUMBERS:
            help_line = f"write {base}, or {base}.all for all that was seen"
            at = start + offset_of(text, name)
            report.add(code, node, f"`{name}` is of numbers, and `{base}` is text", help_line, at, len(name))


def _charset(expression: Expression, known: Mapping[str, str]) -> str:
    match expression:
        case NameExpression(name):
            base, _, suffix = name.partition(".")
            return "list" if suffix == "all" else known.get(base, "word")
        case Literal(str()) | Call("lower", _):
            return "word"
        case Call("reassignment", _):
            return "json"
        case Binary() | Literal() | Call():
            return "num"
    return "num"


def _merged(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    """Return `parts` with neighbouring texts joined and empty ones gone; never empty."""
    joined: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part:
            joined.append(part)
    return tuple(joined) or ("",)


def _report_almost_holes(node: TextNode, report: Report) -> None:
    for found in _ALMOST.finditer(node.value):
        if _HOLE.match(node.value, found.start()):
            continue
        if found[1] is None:
            help_line = "close it with `}`; inside it, braces may stand in quotes only"
            report.add(Code.EXPRESSION_SYNTAX, node, "`{=` does not end as an expression", help_line, found.start(), 2)
        else:
            units, suffixes = "|".join(UNITS), "|".join(SUFFIXES)
            help_line = f"write {{name}}, {{name:{units}}}, {{name.{suffixes}}} or {{name|words}}; or \\{{ to mean the brace"
            message = f"`{found[0]}` is not a hole and is taken literally"
            report.add(Code.LOOKS_LIKE_HOLE, node, message, help_line, found.start(), len(found[0]))
