"""The settings in a fix exist at the level where the step sets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc, Node
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import steps
from engine.dsl.report import Report
from engine.dsl.schema import StepEntry
from engine.dsl.settings import help_for_unknown

_TOOLS = ("kafka-configs", "kafka-configs.sh", "kafka-topics", "kafka-topics.sh")
_ENTITIES: Mapping[str, str] = {"topics": "topic", "brokers": "broker"}
_LISTS = ("--add-config", "--delete-config", "--config")


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each setting of the fix, and of its kafka-configs and kafka-topics commands, that Kafka lacks at that level."""
    for loc, step in steps(draft):
        for name in step.set:
            _check_setting(name, step.where or "", draft.document.key([*loc, "set", name]), 0, report)
        for index, offset, name, where in _in_command(step):
            at: Loc = [*loc, "run", index]
            _check_setting(name, where, draft.document.find(at), offset, report)


def _check_setting(name: str, where: str, at: Node, offset: int, report: Report) -> None:
    help_line = help_for_unknown(name, where)
    if help_line is not None:
        report.add(Code.UNKNOWN_SETTING, at, f"Kafka has no setting `{name}` of a {where}", help_line, offset, len(name))


def _in_command(step: StepEntry) -> Iterator[tuple[int, int, str, str]]:
    """Yield (index of the argument, offset in it, name, level) of every setting that the command of `step` sets or removes."""
    argv = step.run
    if not argv or argv[0] not in _TOOLS:
        return
    where = "topic" if argv[0].startswith("kafka-topics") else _entity(argv)
    for index, argument in enumerate(argv):
        if index and argv[index - 1] in _LISTS:
            yield from ((index, offset, name, where) for offset, name in _names(argument))


def _entity(argv: Sequence[str]) -> str:
    """Return the level of --entity-type; empty for users, clients and addresses, whose quotas are not settings."""
    follows = [argv[index + 1] for index, argument in enumerate(argv[:-1]) if argument == "--entity-type"]
    return _ENTITIES.get(follows[0], "") if len(follows) == 1 else ""


def _names(argument: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, name) of each entry of `a=1,b=[2,3]` or `a,b`; commas within brackets and holes do not separate."""
    depth, start = 0, 0
    for index, char in enumerate(f"{argument},"):
        depth += {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield start, argument[start:index].partition("=")[0]
            start = index + 1
