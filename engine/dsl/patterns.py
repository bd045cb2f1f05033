"""Patterns: log lines with typed holes, compiled to one RE2 expression, its required literals and its captures.

A hole is exactly `{}`, `{name}` or `{name:type}`; any other brace is literal, and a backslash before one forces that. Any run
of whitespace matches one or more of any whitespace, line ends included. Patterns are unanchored and case-sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_ALMOST = re.compile(r"(?<!\\)\{([A-Za-z][A-Za-z0-9_]*)(?::\s*([A-Za-z]+))?\s*\}")
# character classes and escapes are stepped over
_NOT_LINEAR = re.compile(r"\[(?:\\.|[^\]\\])*\]|(?P<why>\(\?<?[=!]|\(\?>|\(\?P=|\\[1-9]|\\k<|(?<=[*+?}])\+)|\\.", re.DOTALL)


class HoleType(Struct, frozen=True):
    """What a typed hole matches: `opening` and `closing` may also be written around the hole by the author."""

    expression: str
    opening: str = ""
    closing: str = ""
    meaning: str = ""


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
    "list": HoleType(r"[^\[\]\r\n]*", r"\[", r"\]", "what stands in `[...]`, written around the hole or not"),
    "quoted": HoleType(
        r"""[^'"\r\n]*""", r"""['"]""", r"""['"]""", "what stands in single or double quotes, written around the hole or not"
    ),
    "rest": HoleType(r"[^\r\n]*", meaning="the rest of the line"),
    "tp": HoleType(
        "",
        meaning="a topic-partition: `orders-3`, `[orders,3]`, `<topic id>:orders-3` or `topic='orders', partition=3`",
    ),
}
NUMBERS = ("int", "num", "bytes", "ms")
_TOPIC = r"[A-Za-z0-9._-]+"
# topic-3, [topic,3] (until 0.11), <topic id>:topic-3 (from 4.1), and topic='topic', partition=3 as records print themselves
_TP_BEFORE = r"\[?(?:[A-Za-z0-9_-]{22}:)?(?:topic ?= ?'?)?"
_TP_BETWEEN = r"(?:-|, ?|'?, partition ?= ?)"
_ANYTHING = r"[^\r\n]*?"
# what a raw expression takes literally, a class, and where a group begins that captures
_IN_REGEX = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?P?<(?P<name>\w+)>|(?!\?))", re.DOTALL
)


class Pattern(Struct, frozen=True):
    """A compiled pattern. `literals` must all occur in the text for `regex` to match; empty when nothing is certain."""

    regex: str
    literals: tuple[str, ...]
    captures: tuple[Captured, ...]
    source: str


def compile_pattern(text: str) -> Pattern:
    """Return the compiled form of `text`; never fails (whether RE2 takes the result is checked by `compiled_by_re2`)."""
    made = _Maker()
    position = 0
    stripped = text.strip("\n")
    for hole in HOLE.finditer(stripped):
        if not _is_hole(hole):
            made.literal(stripped[position : hole.start()] + _unescaped(hole))
        else:
            made.literal(stripped[position : hole.start()])
            made.hole(hole["name"], hole["type"] or "word", stripped[: hole.start()], stripped[hole.end() :])
        position = hole.end()
    made.literal(stripped[position:])
    return Pattern(made.regex(), made.literals(), tuple(made.captures), stripped)


def compiled_by_re2(expression: str) -> str:
    """Return why RE2 refuses `expression`; empty when it takes it."""
    try:
        re2.compile(expression, _options())
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return ""


def report_refused(node: TextNode, reason: str, report: Report) -> None:
    """Report a raw expression that RE2 refuses for `reason`, where in it the reason lies."""
    found = next((each for each in _NOT_LINEAR.finditer(node.value) if each["why"]), None)
    if found is not None:
        message = f"`{found['why']}` takes more than linear time, and RE2 has none of it"
        help_line = "say it with another item and `not` in the condition, or with a repeated hole {name} in a pattern"
        report.add(Code.NOT_LINEAR, node, message, help_line, found.start("why"), len(found["why"]))
        return
    culprit = reason.rpartition(": ")[2]
    at = node.value.find(culprit) if ": " in reason else -1
    place = (at, len(culprit)) if at > 0 else (0, 0)
    report.add(Code.REGEX, node, f"RE2 does not take this: {reason}", "https://github.com/google/re2/wiki/Syntax", *place)


def checked_pattern(node: TextNode, report: Report, nocase: bool = False) -> Pattern | None:
    """Return the pattern that a scalar holds, or None after reporting why it is none."""
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
            Code.PATTERN_TOO_LONG, node, f"the pattern is longer than {MAX_PATTERN_BYTES} bytes", "keep its telling words"
        )
        return None
    _warn_of_almost_holes(node, report)
    pattern = compile_pattern(node.value)
    if not any(part.strip() for part in HOLE.sub(_literal_of, pattern.source).split()):
        report.add(Code.PATTERN_EMPTY, node, "the pattern has holes but no fixed text", "write the fixed words of the line")
        return None
    refused = compiled_by_re2(pattern.regex)
    if refused:
        report.add(Code.REGEX, node, f"the pattern does not compile: {refused}", "shorten the pattern")
        return None
    return Pattern("(?i)" + pattern.regex, (), pattern.captures, pattern.source) if nocase else pattern


def named_groups(expression: str) -> tuple[Captured, ...]:
    """Return the captures of a raw RE2 expression: its named groups in order, as words. Alternatives may share a name."""
    names = [found["name"] for found in _IN_REGEX.finditer(expression) if found[0].startswith("(")]
    return tuple(Captured(group, name, "word") for group, name in enumerate(names, 1) if name)


class _Maker:
    """Builds the expression part by part, counting groups."""

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
        elif type_ == "tp":
            self._topic_partition(name)
        else:
            self._typed(name, type_, before, after)

    def regex(self) -> str:
        return "".join(self._parts)

    def literals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for text in self._literals if len(text) >= MIN_LITERAL))

    def _group(self, name: str, type_: str) -> None:
        self.captures.append(Captured(len(self.captures) + 1, name, type_))

    def _typed(self, name: str, type_: str, before: str, after: str) -> None:
        kind = TYPES[type_]
        self._group(name, type_)
        written = kind.opening and re.search(f"{kind.opening}$", before) and re.match(kind.closing, after)
        opening, closing = ("", "") if written else (kind.opening, kind.closing)
        self._parts.append(f"{opening}({kind.expression}){closing}")

    def _topic_partition(self, name: str) -> None:
        topic, partition = ("topic", "partition") if name == "tp" else (f"{name}_topic", f"{name}_partition")
        self._group(name, "tp")
        self._group(topic, "word")
        self._group(partition, "int")
        self._parts.append(rf"{_TP_BEFORE}(({_TOPIC}){_TP_BETWEEN}([0-9]+))\]?")


def _is_hole(found: re.Match[str]) -> bool:
    return found[0][0] == "{" and (found["type"] is None or found["type"] in TYPES)


def _unescaped(found: re.Match[str]) -> str:
    return found[0][1:] if found[0][0] == "\\" else found[0]


def _literal_of(found: re.Match[str]) -> str:
    return "" if _is_hole(found) else _unescaped(found)


def _warn_of_almost_holes(node: TextNode, report: Report) -> None:
    for found in _almost_holes(node.value):
        kind = found[2] or ""
        message = f"`{found[0]}` is not a hole and is taken literally"
        near = did_you_mean(kind, TYPES) if kind and kind not in TYPES else "a hole's name is lower case: {name} or {name:type}"
        report.add(
            Code.LOOKS_LIKE_HOLE, node, message, f"{near}; write \\{{ to say that it is meant", found.start(), len(found[0])
        )


def _almost_holes(text: str) -> Iterator[re.Match[str]]:
    for found in _ALMOST.finditer(text):
        exact = HOLE.match(text, found.start())
        if exact is None or not _is_hole(exact):
            yield found


@cache
def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options
