"""Propose a pattern for a log text: what varies from case to case becomes a hole of the type that fits.

The type of a value is guessed from its shape and from the words before it; an author reviews the result. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.dsl.patterns import HOLE
from engine.dsl.settings import settings_by_level

# kind of value -> its shape; tried at each position in this order. Group `keep` stays as text, group `take` becomes a hole
_SHAPES: Mapping[str, str] = {
    "hidden": r"(?P<keep>)(?P<take>\[(?:redacted|e-mail|card|national-id|phone)\])",
    "connector_task": r"(?P<keep>\bWorker(?:Source|Sink)Task\{id=)(?P<take>[^\s}]+-[0-9]+)(?=\})",
    "tp": r"(?P<keep>\b[Pp]artitions? (?:is )?)(?P<take>\[?[\w.-]+-[0-9]+\]?)(?![\w.-])",
    "uuid": r"(?P<keep>)(?P<take>[\w.-]*\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    "keyed": r"(?P<keep>\b(?:groupId|group\.id|clientId|client\.id|transactionalId|memberId|principal|topic|connector)[=:] ?'?)"
    r"(?P<take>[^\s,;'\])}]+)",
    "host": r"(?P<keep>(?<![\w.:/-])/?)(?P<take>(?:[A-Za-z][\w.-]*/)?[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?"
    r"|[a-z][\w-]*(?:\.[\w-]+)*:[0-9]{2,5})(?![\w.])",
    "path": r"(?P<keep>(?<![\w.:/}]))(?P<take>/[\w.][^\s'\",;:()\[\]{}<>]*\w)",
    "members": r"(?P<keep>\b[A-Z]\w*\()(?P<take>[0-9][0-9, ]*|)(?=\))",
    "list": r"(?P<keep>\[)(?P<take>[0-9]+(?:, ?[0-9]+)*)(?=\])",
    "bytes": r"(?P<keep>(?<![\w.-]))(?P<take>[0-9]+)(?= ?bytes\b)",
    "ms": r"(?P<keep>(?<![\w.-]))(?P<take>[0-9]+)(?= ?(?:ms|milliseconds)\b)",
    "num": r"(?P<keep>(?<![\w.-]))(?P<take>-?[0-9]+\.[0-9]+)(?![\w.-])",
    "int": r"(?P<keep>(?<![\w.-]))(?P<take>-?[0-9]+)(?!\w|\.[0-9]|-[0-9])",
    "quoted": r"(?P<keep>')(?P<take>[^'\"\s]+)(?=')",
}
_EXPRESSIONS = {kind: re.compile(shape) for kind, shape in _SHAPES.items()}
_KEY = re.compile(r"(?:([A-Za-z]\w*) id|([A-Za-z][\w.]*?)(?:\.?[Ii]d)?)[=:] ?'?$")
_WORD = re.compile(r"[A-Za-z]{2,}")
# words that say nothing about the value after them
_EMPTY_WORDS = frozenset(
    "a an and are as at be by for from has have id in is it its of on or than that the to was with within".split()  # noqa: SIM905
)
_NAMED_BY_TYPE = ("host", "path")
_TYPES = ("bytes", "ms", "num", "int", "path", "host", "list", "quoted", "tp")


class Proposal(Struct, frozen=True):
    """A pattern and the names of its holes, in order; a topic-partition gives its parts too."""

    pattern: str
    names: tuple[str, ...]


def propose(text: str) -> Proposal:
    """Return a pattern that `text` (one line) matches."""
    names: list[str] = []
    pattern, position = "", 0
    while position < len(text):
        first = next((match for match in _matches(text, position) if match is not None), None)
        if first is None:
            pattern += _literal(text, position)
            position += 1
            continue
        kind, match = first
        pattern = _unescaping(pattern + match["keep"]) + _hole(kind, text[: match.start("take")], names)
        position = match.end("take")
    return Proposal(pattern, tuple(names))


def merged(patterns: Sequence[str]) -> list[str]:
    """Return the distinct shapes among `patterns`, in order of first occurrence.

    Patterns with equal numbers of words, at least half of which agree, become one shape with a hole at each differing word.
    """
    shapes: dict[int, list[str]] = {}
    for pattern in patterns:
        words = pattern.split()
        shape = shapes.setdefault(len(words), words)
        equal_words = sum(a == b for a, b in zip(shape, words, strict=True))
        if equal_words * 2 < len(words):
            shapes[len(shapes) + 10_000] = words  # equally long, but another text
        else:
            shapes[len(words)] = [a if a == b else "{}" for a, b in zip(shape, words, strict=True)]
    return list(dict.fromkeys(" ".join(words) for words in shapes.values()))


def _matches(text: str, position: int) -> list[tuple[str, re.Match[str]] | None]:
    """Return (kind, match) of each shape that matches at `position`, in order of preference."""
    matches = ((kind, expression.match(text, position)) for kind, expression in _EXPRESSIONS.items())
    return [(kind, match) for kind, match in matches if match is not None and _varies(kind, match["take"])]


def _varies(kind: str, value: str) -> bool:
    """Return whether `value` differs from case to case; of quoted values, those that are no plain word and no Kafka setting."""
    if kind != "quoted":
        return True
    return not value.isalpha() and not any(value in names for names in settings_by_level().values())


def _literal(text: str, position: int) -> str:
    """Return the character at `position` as a pattern spells it."""
    char = text[position]
    if char in "{}" and HOLE.match(text, position):
        return f"\\{char}"  # or the pattern would have a hole there
    return "{}" if text[position : position + 2] in ("\\{", "\\}") else char


def _unescaping(pattern: str) -> str:
    """Return `pattern` with a final backslash replaced by a hole, as it would escape the hole that follows."""
    return f"{pattern[:-1]}{{}}" if pattern.endswith("\\") else pattern


def _hole(kind: str, before: str, names: list[str]) -> str:
    make_hole = _SPECIAL.get(kind)
    if make_hole is not None:
        return make_hole(names)
    name = _unused(_name(kind, before) or kind, names)
    return f"{{{name}:{kind}}}" if kind in _TYPES else f"{{{name}}}"


def _name(kind: str, before: str) -> str:
    """Return a hole name for the value after the text `before`: its key, or the last significant word; empty if neither."""
    key = _KEY.search(before)
    words = [w for w in _WORD.findall(before) if w.lower() not in _EMPTY_WORDS]
    word = (key[1] or key[2]).rpartition(".")[2] if key else "" if kind in _NAMED_BY_TYPE else (words or [""])[-1]
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", word).lower().removesuffix("_id")
    return snake if re.fullmatch(r"[a-z][a-z0-9_]*", snake) else ""


def _unused(name: str, names: list[str]) -> str:
    free = name if name not in names else next(f"{name}{n}" for n in range(2, len(names) + 3) if f"{name}{n}" not in names)
    names.append(free)
    return free


def _tp(names: list[str]) -> str:
    name = _unused("tp", names)
    names.extend(("topic", "partition") if name == "tp" else ())
    return f"{{{name}:tp}}"


def _connector_task(names: list[str]) -> str:
    return f"{{{_unused('connector', names)}}}-{{{_unused('task', names)}:int}}"


def _member(names: list[str]) -> str:
    return f"{{{_unused('member', names)}}}"


_SPECIAL: Mapping[str, Callable[[list[str]], str]] = {
    "tp": _tp,
    "connector_task": _connector_task,
    "uuid": _member,
    "members": lambda names: "{}",
    "hidden": lambda names: "{}",
}
