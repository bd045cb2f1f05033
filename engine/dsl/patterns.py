"""Compile patterns, log lines with typed holes, to one RE2 expression with its required literals and its captures.

A hole is exactly `{}`, `{name}` or `{name:type}`; any other brace is literal, and a backslash before one forces that. Any run
of whitespace matches one or more of any whitespace, line ends included. Patterns are unanchored and case-sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import re2
from msgspec import Struct

from engine.dsl.codes import Code
from engine.dsl.document import TextNode
from engine.dsl.report import Report, did_you_mean
from engine.model.rules import Captured

MAX_PATTERN_BYTES = 4096
MIN_LITERAL = 3

HOLE = re.compile(r"\\[{}]|\{(?:(?P<name>[a-z][a-z0-9_]*)(?::(?P<type>[a-z]+))?)?\}")
_HOLE_IN_REGEX = re.compile(r"(?<!\\)\{(?P<name>[a-z][a-z0-9_]*):(?P<type>[a-z]+)\}")  # nothing else that RE2 has
_COMPOSITE_GROUP = re.compile(r"\(\?P<(_\w*)>")
_ALMOST = re.compile(r"(?<!\\)\{([A-Za-z][A-Za-z0-9_]*)(?::\s*([A-Za-z]+))?\s*\}")
# character classes and escapes are skipped
_NOT_LINEAR = re.compile(r"\[(?:\\.|[^\]\\])*\]|(?P<why>\(\?<?[=!]|\(\?>|\(\?P=|\\[1-9]|\\k<|(?<=[*+?}])\+)|\\.", re.DOTALL)


class HoleType(Struct, frozen=True):
    """The expression of a typed hole. `opening` and `closing` are added unless the author writes them around the hole.

    A hole of a COMPOSITE type captures several values: the expression has a group for each, named by a suffix behind `_`.
    """

    expression: str
    opening: str = ""
    closing: str = ""
    meaning: str = ""


_TOPIC = r"[A-Za-z0-9._-]+"
# topic-3, [topic,3] (until 0.11), <topic id>:topic-3 (from 4.1), and topic='topic', partition=3 (toString of Java records)
_TP_BEFORE = r"\[?(?:[A-Za-z0-9_-]{22}:)?(?:topic ?= ?'?)?"
_TP_BETWEEN = r"(?:-|, ?|'?, partition ?= ?)"

TYPES = {
    "word": HoleType(r"\S+", meaning="non-blanks, as many as possible: `{connector}-{task:int}` splits at the last dash"),
    "int": HoleType(r"-?[0-9]+", meaning="a whole number"),
    "num": HoleType(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", meaning="a number, with a fraction or exponent"),
    "bytes": HoleType(r"[0-9]+", meaning="a whole number of bytes"),
    "ms": HoleType(r"[0-9]+", meaning="a whole number of milliseconds"),
    "host": HoleType(
        r"[A-Za-z0-9\[](?:[A-Za-z0-9._:/%\[\]-]*[A-Za-z0-9\]])?",
        meaning="a host name, an address or both (`kafka-1/10.0.0.5`), with its port",
    ),
    "path": HoleType(
        r"""(?:[A-Za-z]:)?[/\\](?:[^\s'",;:()\[\]{}<>]*[^\s'",;:()\[\]{}<>.])?""", meaning="an absolute path without blanks"
    ),
    "list": HoleType(r"[^\[\]\r\n]*", r"\[", r"\]", "the text in `[...]`; the brackets may be written around the hole or not"),
    "quoted": HoleType(
        r"""[^'"\r\n]*""", r"""['"]""", r"""['"]""", "the text in single or double quotes, written around the hole or not"
    ),
    "rest": HoleType(r"[^\r\n]*", meaning="the rest of the line"),
    "hostport": HoleType(
        # a name or an address, and behind it what Java resolved it to
        r"/?(?P<_>(?P<_host>\[[0-9a-fA-F:.]+\]|[^\s/:\"'\\\[\](){},;=<>]+)(?:/(?:(?P<_ip>\[?[0-9a-fA-F:.]+\]?)|<unresolved>))?"
        r":(?P<_port>[0-9]{1,5}))",
        meaning="a host and its port: `kafka-1:9092`, `10.0.0.5:9092`, `[fd00::5]:9092`, `kafka-1/10.0.0.5:9092`",
    ),
    "tp": HoleType(
        rf"{_TP_BEFORE}(?P<_>(?P<_topic>{_TOPIC}){_TP_BETWEEN}(?P<_partition>[0-9]+))\]?",
        meaning="a topic-partition: `orders-3`, `[orders,3]`, `<topic id>:orders-3` or `topic='orders', partition=3`",
    ),
}
NUMBERS = ("int", "num", "bytes", "ms")
# types whose holes capture several values: the name that stands for the whole without a prefix, and the types of the parts
COMPOSITE = {
    "hostport": ("address", {"": "word", "_host": "host", "_ip": "host", "_port": "word"}),  # a port is no quantity
    "tp": ("tp", {"": "tp", "_topic": "word", "_partition": "int"}),
}
_ANYTHING = r"[^\r\n]*?"
# in a raw expression: literal text, a character class, and the beginning of a capturing group
_IN_REGEX = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?P?<(?P<name>\w+)>|(?!\?))", re.DOTALL
)


class Pattern(Struct, frozen=True):
    """A compiled pattern. All `literals` occur in every text that `regex` matches; empty when none is certain."""

    regex: str
    literals: tuple[str, ...]
    captures: tuple[Captured, ...]
    source: str


def compile_pattern(text: str) -> Pattern:
    """Return the compiled form of `text`. Never fails; `compiled_by_re2` checks whether RE2 accepts the result."""
    builder = _PatternBuilder()
    position = 0
    stripped = text.strip("\n")
    for hole in HOLE.finditer(stripped):
        if not _is_hole(hole):
            builder.literal(stripped[position : hole.start()] + _unescaped(hole))
        else:
            builder.literal(stripped[position : hole.start()])
            builder.hole(hole["name"], hole["type"] or "word", stripped[: hole.start()], stripped[hole.end() :])
        position = hole.end()
    builder.literal(stripped[position:])
    return Pattern(builder.regex(), builder.literals(), tuple(builder.captures), stripped)


def compiled_by_re2(expression: str) -> str:
    """Return the reason why RE2 refuses `expression`; empty when RE2 accepts it."""
    try:
        re2.compile(expression, _options())
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return ""


def report_refused(node: TextNode, reason: str, report: Report) -> None:
    """Report a raw expression that RE2 refuses for `reason`, at the offending part of it where that is clear."""
    construct = next((match for match in _NOT_LINEAR.finditer(node.value) if match["why"]), None)
    if construct is not None:
        message = f"`{construct['why']}` may take more than linear time, so RE2 does not have it"
        help_line = "use another item and `not` in the condition, or a repeated hole {name} in a pattern"
        report.add(Code.NOT_LINEAR, node, message, help_line, construct.start("why"), len(construct["why"]))
        return
    fragment = reason.rpartition(": ")[2]
    at = node.value.find(fragment) if ": " in reason else -1
    place = (at, len(fragment)) if at > 0 else (0, 0)
    report.add(Code.REGEX, node, f"RE2 does not accept this: {reason}", "https://github.com/google/re2/wiki/Syntax", *place)


def checked_pattern(node: TextNode, report: Report, nocase: bool = False) -> Pattern | None:
    """Return the compiled pattern of a scalar; None, reported, when it is not a usable pattern."""
    if node.cut:
        help_line = "put `>-` after the key and the text, indented, on the next line; or quote it"
        report.add(Code.YAML_PLAIN, node, "YAML cuts this unquoted pattern at ` #`", help_line)
    if not node.value.strip():
        report.add(
            Code.PATTERN_EMPTY, node, "the pattern is empty and would match every line", "write the fixed words of the line"
        )
        return None
    if len(node.value.encode()) > MAX_PATTERN_BYTES:
        report.add(
            Code.PATTERN_TOO_LONG,
            node,
            f"the pattern is longer than {MAX_PATTERN_BYTES} bytes",
            "keep the words that identify the line",
        )
        return None
    _warn_of_almost_holes(node, report)
    pattern = compile_pattern(node.value)
    if not any(part.strip() for part in HOLE.sub(_literal_of, pattern.source).split()):
        report.add(Code.PATTERN_EMPTY, node, "the pattern has holes but no fixed text", "write the fixed words of the line")
        return None
    refusal = compiled_by_re2(pattern.regex)
    if refusal:
        report.add(Code.REGEX, node, f"the pattern does not compile: {refusal}", "shorten the pattern")
        return None
    return Pattern("(?i)" + pattern.regex, (), pattern.captures, pattern.source) if nocase else pattern


def with_holes(expression: str) -> tuple[str, Mapping[str, str]]:
    """Return a raw expression with its holes `{name:type}` replaced by named groups, and the type of each capture of a hole."""
    types: dict[str, str] = {}

    def group(hole: re.Match[str]) -> str:
        name, type_ = hole["name"], hole["type"]
        if type_ not in TYPES:
            return hole[0]
        hole_type = TYPES[type_]
        if type_ not in COMPOSITE:
            types.setdefault(name, type_)
            return f"{hole_type.opening}(?P<{name}>{hole_type.expression}){hole_type.closing}"
        whole = COMPOSITE[type_][0]
        for part, part_type in _parts_of(name, type_).items():
            types.setdefault(part, part_type)
        return _COMPOSITE_GROUP.sub(lambda part: f"(?P<{_part_name(name, part[1].rstrip('_'), whole)}>", hole_type.expression)

    return _HOLE_IN_REGEX.sub(group, expression), types


def named_groups(expression: str, types: Mapping[str, str]) -> tuple[Captured, ...]:
    """Return the named groups of a raw RE2 expression in order, as captures. Names may repeat in alternatives.

    Args:
        types: the types of captures by name; others are of type word.
    """
    names = [match["name"] for match in _IN_REGEX.finditer(expression) if match[0].startswith("(")]
    return tuple(Captured(group, name, types.get(name, "word")) for group, name in enumerate(names, 1) if name)


class _PatternBuilder:
    """Builds the RE2 expression of a pattern part by part and numbers its groups."""

    def __init__(self) -> None:
        self.captures: list[Captured] = []
        self._parts: list[str] = []
        self._literals: list[str] = [""]

    def literal(self, text: str) -> None:
        for piece in re.findall(r"\s+|\S+", text):
            if piece.isspace():
                if not self._parts or self._parts[-1] != r"\s+":
                    self._parts.append(r"\s+")
                self._literals.append("")
            else:
                self._parts.append(re.escape(piece))
                self._literals[-1] += piece

    def hole(self, name: str | None, type_: str, before: str, after: str) -> None:
        self._literals.append("")
        if name is None:
            self._parts.append(_ANYTHING)
        elif type_ in COMPOSITE:
            self._composite(name, type_)
        else:
            self._typed(name, type_, before, after)

    def regex(self) -> str:
        return "".join(self._parts)

    def literals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for text in self._literals if len(text) >= MIN_LITERAL))

    def _group(self, name: str, type_: str) -> None:
        self.captures.append(Captured(len(self.captures) + 1, name, type_))

    def _typed(self, name: str, type_: str, before: str, after: str) -> None:
        hole_type = TYPES[type_]
        self._group(name, type_)
        enclosed = hole_type.opening and re.search(f"{hole_type.opening}$", before) and re.match(hole_type.closing, after)
        opening, closing = ("", "") if enclosed else (hole_type.opening, hole_type.closing)
        self._parts.append(f"{opening}({hole_type.expression}){closing}")

    def _composite(self, name: str, type_: str) -> None:
        for part, part_type in _parts_of(name, type_).items():
            self._group(part, part_type)
        self._parts.append(_COMPOSITE_GROUP.sub("(", TYPES[type_].expression))


def _parts_of(name: str, type_: str) -> dict[str, str]:
    """Return the captures of a hole of a composite type, in order of their groups, with their types."""
    whole, parts = COMPOSITE[type_]
    return {_part_name(name, suffix, whole): part_type for suffix, part_type in parts.items()}


def _part_name(name: str, suffix: str, whole: str) -> str:
    return suffix.removeprefix("_") if suffix and name == whole else f"{name}{suffix}"


def _is_hole(match: re.Match[str]) -> bool:
    return match[0][0] == "{" and (match["type"] is None or match["type"] in TYPES)


def _unescaped(match: re.Match[str]) -> str:
    return match[0][1:] if match[0][0] == "\\" else match[0]


def _literal_of(match: re.Match[str]) -> str:
    return "" if _is_hole(match) else _unescaped(match)


def _warn_of_almost_holes(node: TextNode, report: Report) -> None:
    for match in _almost_holes(node.value):
        kind = match[2] or ""
        message = f"`{match[0]}` is not a hole and is taken literally"
        help_line = (
            did_you_mean(kind, TYPES) if kind and kind not in TYPES else "a hole's name is lower case: {name} or {name:type}"
        )
        report.add(
            Code.LOOKS_LIKE_HOLE, node, message, f"{help_line}; write \\{{ to mean the brace", match.start(), len(match[0])
        )


def _almost_holes(text: str) -> Iterator[re.Match[str]]:
    for match in _ALMOST.finditer(text):
        hole = HOLE.match(text, match.start())
        if hole is None or not _is_hole(hole):
            yield match


@cache
def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options
