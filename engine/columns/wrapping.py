"""Expressions for the wrappers of engine/parse/wrappers: which lines may have one, and where a prefix ends.

SIGNS holds, for each wrapper, an expression that matches every ASCII line that may have it. A wrapper that is not listed may be
on any line that begins with one of its characters (`FIRST`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa
from msgspec import Struct

from engine.columns.layouts import groups_of, matching
from engine.columns.lines import Flags
from engine.parse import wrappers
from engine.parse.wrappers import (
    compose,
    container_stamp,
    desktop_stamp,
    foreign_prefix,
    gutter,
    journal,
    kibana,
    loki,
    pod,
    quoted,
    runner,
    table_row,
)

_MANY = 8  # an expression that may repeat more often is taken to repeat any number of times
_ASCII = r"^[\x00-\x7f]*$"
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def loosened(pattern: re.Pattern[str]) -> str:
    """Return an RE2 expression that matches every ASCII line that `pattern` matches at its beginning, and perhaps others.

    RE2 has no look-around: a look-ahead at the end of `pattern` becomes a plain group; every other one is left out, as are
    negative ones and look-behinds.
    """
    regex = re.sub(r"\(\?(?:<[=!]|!)(?:\\.|[^()\\])*\)", "", pattern.pattern)
    while (start := regex.find("(?=")) >= 0:
        groups = groups_of(regex)
        end = next(stop for begin, stop in groups if begin == start)
        ahead = f"(?:{regex[start + 3 : end]}" if _is_last(regex, end, groups) else ""
        regex = regex[:start] + ahead + regex[end:]
    regex = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), regex)
    return f"^(?:{_COUNT.sub(_any_number, regex)})"


def _is_last(regex: str, at: int, groups: Sequence[tuple[int, int]]) -> bool:
    """Return whether an alternative of `regex` may end at a position, so that nothing has to match behind it."""
    while at < len(regex):
        if regex[at] not in "|)":
            return False
        around = [end for start, end in groups if start < at < end]
        if not around:
            return True
        at = min(around)
    return True


def _any_number(repeat: re.Match[str]) -> str:
    least, most = int(repeat[1]), repeat[2]
    if most is None:
        return repeat[0] if least <= _MANY * 2 else "+"
    return repeat[0] if most and int(most) <= _MANY else ("+" if least else "*")


SIGNS: Mapping[str, str] = {
    "compose": f"{loosened(compose._PREFIX)}|{loosened(compose._EXIT)}",
    "connect_status": r"^\{",
    "container_stamp": loosened(container_stamp._STAMP),
    "desktop_stamp": loosened(desktop_stamp._STAMP),
    "docker_json": r"^\{",
    "export_row": r'^"[A-Z][a-z]{2} \d{1,2}, \d{4} @ |^"?\{'
    r'|^"?(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.:Z+-]*|\d{13}(?:\d{6})?)"?,'
    r"(?:\d{0,2}(?:[^\d]|$)|\d{3}\S)",
    "foreign_prefix": loosened(foreign_prefix._PREFIX),
    "gutter": loosened(gutter._NUMBER),
    "journal": "|".join(map(loosened, (journal._PREFIX, journal._RFC5424, journal._PRIORITY))),
    "journal_json": r"^\{",
    "kibana": loosened(kibana._ROW),
    "loki": loosened(loki._PREFIX),
    "pod": loosened(pod._PREFIX),
    "quoted": loosened(quoted._MARK),
    "runner": loosened(runner._PREFIX),
    "structured_json": r'^\{|^"(?:@?timestamp|time|ts|log\.level|level|severity|caller|msg|message)":',
    "table_row": loosened(table_row._ROW),
}


class Prefix(Struct, frozen=True):
    """A wrapper that is text before a line.

    Attributes:
        name: its module in engine/parse/wrappers.
        fits: an expression that matches only lines that certainly have it.
        head: matches the text to cut off: a stamp (`at`), then the rest (`key`). Prefixes with equal keys differ in the stamp.
    """

    name: str
    fits: str
    head: str


PREFIXES = (
    Prefix(
        "container_stamp",
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)(?: (?:stdout|stderr) [FP])?(?: |$)",
        r"^(?P<at>[^ ]+)(?P<key>(?: (?:stdout|stderr) [FP])?(?: |$))",
    ),
    Prefix(
        "journal",
        r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
        r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) "
        r"[\w.-]{1,253} (?:[\w./@:-]{1,128}\[\d{1,10}\]|kernel|systemd):",
        r"^(?P<at>[A-Z][a-z]{2} .\d \d\d:\d\d:\d\d(?:\.\d+)?|\d[^ ]+)(?P<key> [\w.-]+ [^ \[]*(?:\[\d+\])?: ?)",
    ),
    Prefix("compose", r"^[A-Za-z][\w.@-]{0,127}\s{1,200}[|│]", r"^(?P<at>)(?P<key>[\w.@-]+\s+[|│] ?)"),
    Prefix(
        "pod",
        r"^\[pod/[a-z0-9][a-z0-9.-]{0,252}/[a-z0-9][a-z0-9-]{0,62}\]",
        r"^(?P<at>)(?P<key>\[pod/[^\]]+\] ?)",
    ),
)
OUTERMOST = frozenset(("compose", "pod"))  # wrappers that never stand within another one


@cache
def order() -> tuple[str, ...]:
    """Return the names of all wrappers in the order in which the parser tries them."""
    modules = [import_module(f"{wrappers.__name__}.{module.name}") for module in iter_modules(wrappers.__path__)]
    modules.sort(key=lambda module: (module.ORDER, module.__name__))
    return tuple(module.__name__.rpartition(".")[2] for module in modules)


@cache
def sign(inside: bool, before: str = "") -> str:
    """Return an expression that matches every ASCII line that may have a wrapper.

    Args:
        inside: leave out those of OUTERMOST: the line was within a wrapper that names a container.
        before: take only the wrappers that the parser tries before this one.
    """
    names = order()[: order().index(before)] if before else order()
    return "|".join(_sign(name) for name in names if not (inside and name in OUTERMOST)) or r"[^\x00-\x{10FFFF}]"


def may_have_wrapper(texts: pa.StringArray, inside: bool) -> Flags:
    """Return which texts, in no specific layout, may have a wrapper. Texts that are not ASCII may: signs are for ASCII only.

    Args:
        inside: the texts were within a wrapper that names a container.
    """
    flags: Flags = matching(texts, sign(inside)) | (~matching(texts, _ASCII) & ~matching(texts, r"^\t"))
    return flags


def _sign(name: str) -> str:
    if name in SIGNS:
        return SIGNS[name]
    module = import_module(f"{wrappers.__name__}.{name}")
    return f"^[{re.escape(module.FIRST)}]"
