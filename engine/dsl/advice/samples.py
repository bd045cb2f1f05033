"""A pattern has holes where its sample has values; otherwise it misses the same problem everywhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import firing_logs, patterns
from engine.dsl.patterns import HOLE
from engine.dsl.report import Report

_NAME = "the name of one group, topic or connector"
_NUMBER = re.compile(r"(?<![\w.-])(?:[0-9]{2,}|[0-9a-f]{8}-[0-9a-f-]{27})(?![\w-])")
# kind of value that is specific to one installation -> its expression; the group is the value
_INSTANCES: Mapping[str, re.Pattern[str]] = {
    "an address": re.compile(r"(?<![\w.])(?!127\.|0\.0\.0\.0)([0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{2,5})?)(?![\w.])"),
    "a host": re.compile(r"(?<![\w.:/-])([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*:[0-9]{2,5})(?![\w.])"),
    "the id of one process": re.compile(
        r"(?i)(?<![a-z])(?:broker|node|brokerid|nodeid|broker\.id|node\.id|replica|leader|controller|worker|task|pid)"
        r"(?: id)?(?:=|: ?| |-)([0-9]+)(?![\w.])"
    ),
    _NAME: re.compile(
        r"(?i)(?<![a-z])(?:groupid|clientid|group|topic|connector|member|principal|user)(?: id)?(?:=|: ?| )['\"\[]?"
        r"((?![a-z]+[.]java)[a-z][a-z0-9]*[-_.][a-z0-9._-]*[a-z0-9])"
    ),
    "one partition": re.compile(r"(?i)partition ([a-z][\w.-]*-[0-9]+)(?![\w.])"),
}


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report numbers in a pattern that its own sample has where a hole belongs, and names that no other rule's sample has."""
    logs = firing_logs(draft)
    for pattern in patterns(draft):
        _report_missing_hole(pattern, logs, report)
        for kind, start, value in _instances(pattern.value):
            wording = kind == _NAME and _in_other_samples(value, draft, pack)  # Kafka's own words occur in many samples
            if _occurs_in(value, logs) and not wording:
                message = f"`{value}` looks like {kind}, and comes from the rule's own sample"
                help_line = "put a hole there, for example {broker:int}, {host:host} or {group}"
                report.add(Code.SAMPLE_CONSTANT, pattern, message, help_line, start, len(value))


def _report_missing_hole(pattern: TextNode, logs: Sequence[str], report: Report) -> None:
    number = _NUMBER.search(pattern.value)
    if number is None or any(hole["name"] for hole in HOLE.finditer(pattern.value)):
        return
    if any(" ".join(pattern.value.split()) in " ".join(log.split()) for log in logs):
        message = f"the pattern has no hole, yet holds `{number[0]}` as its own sample does"
        help_line = "put a hole where the value differs from case to case, for example {size:bytes}"
        report.add(Code.PATTERN_IS_SAMPLE, pattern, message, help_line, number.start(), len(number[0]))


def _instances(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, offset, value) of each value in `text`, outside its holes, that looks specific to one installation."""
    fixed = HOLE.sub(lambda hole: "\0" * len(hole[0]), text)
    for kind, expression in _INSTANCES.items():
        yield from ((kind, match.start(1), match[1]) for match in expression.finditer(fixed))


def _in_other_samples(value: str, draft: Draft, pack: Pack) -> bool:
    return any(_occurs_in(value, firing_logs(other)) for other in pack.drafts.values() if other.id != draft.id)


def _occurs_in(value: str, logs: Sequence[str]) -> bool:
    return any(value in log for log in logs)
