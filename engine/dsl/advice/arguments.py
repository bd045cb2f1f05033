"""A command that takes the name of a host is not given its port or a URL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.dsl.codes import Code
from engine.dsl.document import Loc, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import steps
from engine.dsl.report import Report

# commands of words, and the place of the name in them; `nc` takes host and port as two words
_TAKES_NAME = r"\b(?:getent (?:ahosts|hosts)|nslookup|dig|traceroute|ping(?: -c ?\d+)?|nc(?: -\w+)+|telnet) "
_IN_PROSE = re.compile(_TAKES_NAME + r"(?P<hole>\{[a-z][a-z0-9_.]*(?P<rest>[:|][^{}]*)?\})")
_PROGRAMS = frozenset(("getent", "nslookup", "dig", "traceroute", "ping", "nc", "telnet"))
_HOLE = re.compile(r"\{[a-z][a-z0-9_.]*(?P<rest>:[a-z]+)?\}")


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each hole in the place of a host's name, in a command or in the words of a step, that is not of the unit host."""
    for loc, text in _arguments(draft):
        node = draft.document.find(loc)
        for match in (_HOLE if loc[-2] == "run" else _IN_PROSE).finditer(text):
            if isinstance(node, TextNode) and not (match["rest"] or "").startswith(":host"):
                hole = match[0] if loc[-2] == "run" else match["hole"]
                message = f"`{hole}` stands where the command takes a name, and may hold a port or be a URL"
                help_line = f"write {hole[:-1].partition('|')[0].partition(':')[0]}:host}}"
                report.add(Code.NOT_A_NAME, node, message, help_line, node.value.find(hole), len(hole))


def _arguments(draft: Draft) -> Iterator[tuple[Loc, str]]:
    """Yield (place, text) of what may hold a host's name: the words of each step, and the first hole of such a command."""
    for loc, step in steps(draft):
        yield (*loc, "do"), step.do
        if step.run and step.run[0] in _PROGRAMS:
            holes = (index for index, argument in enumerate(step.run) if _HOLE.search(argument))
            yield from (((*loc, "run", index), step.run[index]) for index in list(holes)[:1])
