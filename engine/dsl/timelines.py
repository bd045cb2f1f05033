"""Timelines: tests of a rule over time, one step a line.

    at 0s: INFO opened orders
    at 10s in worker.log: ERROR stopped orders
      java.io.IOException: a line that is indented goes on with the event before it
    at 59s: nothing
    at 60s: fires {topic: orders}
    at 2h: over

A log line stands without its stamp, which is written from the time of its step; where `{time}` stands in it, it goes there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from engine.dsl.codes import Code
from engine.dsl.document import MapNode, TextNode, place, plain
from engine.dsl.quantities import duration_s
from engine.dsl.reader import read
from engine.dsl.report import Report
from engine.dsl.rule_test import FIRES, NOTHING, OVER, SOURCE, TimelineStep

_STEP = re.compile(r"at (?P<at>\S+?)(?: in (?P<source>[\w.-]+))?: ?(?P<what>.*)")
_FIRES = re.compile(r"fires(?:\s+(?P<facts>\S.*))?")
_STAMP = re.compile(r"\W?\d{4}[-/]\d\d[-/]\d\d")
_HELP = "write `at 0s: LINE`, `at 10s in SOURCE: LINE`, `at 59s: nothing`, `at 60s: fires {name: value}` or `at 2h: over`"


def timeline(node: TextNode, report: Report) -> tuple[TimelineStep, ...]:
    """Return the steps of a timeline; a line that is none is reported and left out."""
    steps: list[TimelineStep] = []
    for line, offset in _lines(node.value):
        goes_on = line[0].isspace() and bool(steps) and not steps[-1].expects
        if goes_on:
            steps[-1] = replace(steps[-1], log=f"{steps[-1].log}\n{line}")
            continue
        made = _step(line)
        wrong = made if isinstance(made, str) else _disorder(steps, made)
        if wrong:
            report.add(Code.TIMELINE, place(node, offset), wrong, _HELP, length=len(line))
        elif isinstance(made, TimelineStep):
            steps.append(made)
    if steps and not any(step.expects for step in steps):
        report.add(Code.TIMELINE, node, "the timeline expects nothing", _HELP)
    return tuple(steps)


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield each line that is not blank, and at which character it begins."""
    offset = 0
    for line in text.split("\n"):
        if line.strip():
            yield line, offset
        offset += len(line) + 1


def _step(line: str) -> TimelineStep | str:
    """Return the step that a line spells, or what is wrong with it."""
    parts = _STEP.fullmatch(line)
    if parts is None:
        return "this is no step of a timeline"
    try:
        at = duration_s(parts["at"])
    except ValueError:
        return f"`{parts['at']}` is not a duration"
    what = parts["what"].strip()
    fires = _FIRES.fullmatch(what)
    if fires is not None:
        facts = _facts(fires["facts"] or "{}")
        return (
            "what stands after `fires` is no map of names to values"
            if facts is None
            else TimelineStep(at, what, "", "", FIRES, facts)
        )
    if what in (NOTHING, OVER):
        return TimelineStep(at, what, expects=what)
    if _STAMP.match(what):
        return "a line of a timeline stands without its stamp"
    return TimelineStep(at, what, parts["source"] or SOURCE, what) if what else "the step says nothing"


def _facts(text: str) -> Mapping[str, str] | None:
    document, report = read("", f"facts: {text}".encode())
    node = document.root.get("facts")
    alone = len(document.root.entries) == 1 and not report.all()
    if not alone or not isinstance(node, MapNode) or not all(isinstance(value, TextNode) for _, value in node.entries):
        return None
    return {name.value: str(plain(value)) for name, value in node.entries}


def _disorder(steps: list[TimelineStep], step: TimelineStep) -> str:
    return "time goes back; late lines are tried by themselves" if steps and step.at_s < steps[-1].at_s else ""
