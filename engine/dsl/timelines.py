"""Parse timelines: tests of a rule over time, one step per line.

    at 0s: INFO opened orders
    at 10s in worker.log: ERROR stopped orders
      java.io.IOException: a line that is indented goes on with the event before it
    at 59s: nothing
    at 60s: fires {topic: orders}
    at 2h: over

A log line is written without its timestamp, which comes from the time of its step; it goes where the line has `{time}`,
or, as a source that asks writes it, `{asked}`.
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
    """Return the steps of a timeline; a line that is not a step is reported and left out."""
    steps: list[TimelineStep] = []
    for line, offset in _lines(node.value):
        is_continuation = line[0].isspace() and bool(steps) and not steps[-1].expects
        if is_continuation:
            steps[-1] = replace(steps[-1], log=f"{steps[-1].log}\n{line}")
            continue
        step = _step(line)
        problem = step if isinstance(step, str) else _disorder(steps, step)
        if problem:
            report.add(Code.TIMELINE, place(node, offset), problem, _HELP, length=len(line))
        elif isinstance(step, TimelineStep):
            steps.append(step)
    if steps and not any(step.expects for step in steps):
        report.add(Code.TIMELINE, node, "the timeline expects nothing", _HELP)
    return tuple(steps)


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield (line, offset of its first character) for each line that is not blank."""
    offset = 0
    for line in text.split("\n"):
        if line.strip():
            yield line, offset
        offset += len(line) + 1


def _step(line: str) -> TimelineStep | str:
    """Return the step on `line`, or the error message when it is not one."""
    parts = _STEP.fullmatch(line)
    if parts is None:
        return "this is not a step of a timeline"
    try:
        at = duration_s(parts["at"])
    except ValueError:
        return f"`{parts['at']}` is not a duration"
    text = parts["what"].strip()
    fires = _FIRES.fullmatch(text)
    if fires is not None:
        facts = _facts(fires["facts"] or "{}")
        return (
            "the text after `fires` is not a map of names to values"
            if facts is None
            else TimelineStep(at, text, "", "", FIRES, facts)
        )
    if text in (NOTHING, OVER):
        return TimelineStep(at, text, expects=text)
    if _STAMP.match(text):
        return "a log line in a timeline has no timestamp of its own"
    return TimelineStep(at, text, parts["source"] or SOURCE, text) if text else "the step is empty"


def _facts(text: str) -> Mapping[str, str] | None:
    document, report = read("", f"facts: {text}".encode())
    node = document.root.get("facts")
    alone = len(document.root.entries) == 1 and not report.all()
    if not alone or not isinstance(node, MapNode) or not all(isinstance(value, TextNode) for _, value in node.entries):
        return None
    return {name.value: str(plain(value)) for name, value in node.entries}


def _disorder(steps: list[TimelineStep], step: TimelineStep) -> str:
    """Return an error message when `step` is earlier than the last of `steps`; empty otherwise."""
    wrong = bool(steps) and step.at_s < steps[-1].at_s
    return (
        "the step is earlier than the one above it; write steps in order of time, late lines are tested anyway" if wrong else ""
    )
