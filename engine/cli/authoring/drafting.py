"""Draft a rule from pasted log lines: patterns with holes, the entity, and tests.

Pure, except that it reads ordinary logs, in which nothing is wrong: a draft that fires on them is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

import engine
from engine.cli.authoring.yaml_text import entry, folded, literal, scalar
from engine.cli.intake import Intake
from engine.dsl.advice.unfinished import MARK
from engine.dsl.files import RuleSource
from engine.dsl.pack import compile_sources
from engine.dsl.patterns import HOLE, compile_pattern
from engine.dsl.proposing import merged, propose
from engine.errors import RulesError, UsageError
from engine.match import Matcher, redact
from engine.model.matches import Value
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap

PASTED = "pasted"

_LEVELS: Mapping[str, str] = {"FATAL": "critical", "ERROR": "high", "WARN": "medium", "WARNING": "medium"}
# prefix of a logger -> component; the first prefix that fits counts
_COMPONENTS: Mapping[str, str] = {
    "io.debezium": "debezium",
    "io.confluent.kafka.schemaregistry": "schema-registry",
    "io.strimzi": "strimzi",
    "org.springframework.kafka": "spring",
    "org.apache.kafka.connect": "connect",
    "org.apache.kafka.streams": "streams",
    "org.apache.kafka.clients": "client",
    "org.apache.kafka.controller": "controller",
    "kafka.controller": "controller",
    "org.apache.zookeeper": "zookeeper",
    "kafka.": "broker",
    "org.apache.kafka.": "broker",
    "state.change.logger": "broker",
}
# captures that make an entity; the first tuple of which all captures exist counts
_ENTITIES = (("connector", "task"), ("topic", "partition"), ("group",), ("topic",), ("broker",), ("client",), ("host",))
_EXCEPTION = re.compile(r"^(?:Caused by: )?(?:[a-z][\w$]*\.)+(?P<reason>[A-Z][\w$.]*(?:Exception|Error)\b.*)$", re.MULTILINE)
_FROM_TEXT = datetime(2024, 1, 1, tzinfo=UTC)  # the time of lines without a stamp
_TITLE = 80  # characters
MAX_TESTS = 4  # pasted events that become tests

Firing = Mapping[str, Mapping[str, Value]]  # text of an event -> its captures


class RuleDraft(Struct, frozen=True):
    """A draft: the id and text of the rule file, the ids of rules that match the lines already, and the number of events."""

    id: str
    text: str
    known_rules: tuple[str, ...]
    events: int


def shipped_logs() -> Path:
    """Return the folder of the shipped logs in which nothing is wrong: that of the installed wheel, else the repository's."""
    packaged = Path(engine.__file__).parent / "_goodlog"
    return packaged if packaged.is_dir() else Path(engine.__file__).parents[1] / "samples" / "goodlog"


def draft_rule(pasted: str, plan: Plan, id_: str, ordinary_logs: Path) -> RuleDraft:
    """Return the draft of a rule that fires on each event of `pasted`. Secrets become holes and are in no test.

    Args:
        plan: the existing rules, and the formats that decode the lines.
        id_: the id of the rule; when empty it is made of the words of the first event.
        ordinary_logs: a folder of logs in which nothing is wrong; the most similar of their events becomes the near miss.

    Raises UsageError when `pasted` has no line, when the id is taken, or when the draft fires on an ordinary event too.
    """
    events = list(_events(_lines(redact(pasted)), plan))
    if not events:
        raise UsageError("there is no log line to make a rule of; name a file, or paste lines and end with Ctrl-D")
    name = id_ or _id_of(events[0])
    if name in plan.rules():
        raise UsageError(f"there is a rule `{name}` already; give this one another id with --id")
    ordinary = list(_events(Intake([str(ordinary_logs)], {}).lines(), plan))
    sketch = _matcher(name, _rule_text(name, events, {events[0].text: {}}, ""))
    _refuse_false_alarm(sketch, ordinary)
    text = _rule_text(name, events, _firing(events, sketch), _nearest(events[0], ordinary))
    matcher = Matcher(plan)
    known_rules = {match.rule_id for event in events for match in matcher.match_event(event)}
    return RuleDraft(name, text, tuple(sorted(id_ for id_ in known_rules if id_ in plan.rules())), len(events))


def _lines(text: str) -> Iterator[RawLine | Progress]:
    offset = 0
    for number, line in enumerate(text.encode("utf-8", "replace").splitlines(), 1):
        yield RawLine(PASTED, offset, line, number, _FROM_TEXT, {})
        offset += len(line) + 1
    yield Progress(PASTED, offset, offset, caught_up=True)


def _events(lines: Iterable[RawLine | Progress], plan: Plan) -> Iterator[LogEvent]:
    read = decode(assemble(unwrap(lines, plan.formats), plan.formats), plan.formats)
    return (event for event in read if isinstance(event, LogEvent))


def _matcher(name: str, text: str) -> Matcher:
    """Return the matcher of the rule file `text`. Raises RulesError when it has errors."""
    pack = compile_sources([RuleSource(Path(f"{name}.yml"), "rule", text.encode())])
    if pack.errors():
        raise RulesError(pack.errors())
    return Matcher(pack.plan)


def _refuse_false_alarm(sketch: Matcher, ordinary: Iterable[LogEvent]) -> None:
    hit = next((event for event in ordinary if sketch.match_event(event)), None)
    if hit is not None:
        raise UsageError(
            f"a rule of these lines would also fire on {hit.source_id}:{hit.number}, where nothing is wrong:\n"
            f"  {hit.message}\npaste more of the event, such as the exception that says what went wrong"
        )


def _firing(events: Iterable[LogEvent], sketch: Matcher) -> Firing:
    """Return the events with different captures, in order and at most MAX_TESTS, with their captures."""
    captures_by_text = {event.text: dict(match.captures) for event in events for match in sketch.match_event(event)}
    text_by_captures: dict[str, str] = {}
    for text, captures in captures_by_text.items():
        text_by_captures.setdefault(repr(captures), text)
    return {text: captures_by_text[text] for text in list(text_by_captures.values())[:MAX_TESTS]}


def _nearest(event: LogEvent, ordinary: Iterable[LogEvent]) -> str:
    """Return the text of the ordinary event that shares the largest part of its words with `event`; empty without events."""
    words = set(event.message.split())
    return max((candidate.text for candidate in ordinary), key=lambda text: _likeness(words, set(text.split())), default="")


def _likeness(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(1, len(words | others))


def _reason(event: LogEvent) -> str:
    """Return the innermost exception of `event`, class and message; empty without one, or when the event's message has it."""
    messages = [hit["reason"].strip() for hit in _EXCEPTION.finditer(event.text)]
    return messages[-1] if messages and messages[-1] not in event.message else ""


def _id_of(event: LogEvent) -> str:
    text = _reason(event).partition(":")[0] or propose(event.message).pattern
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text))
    return "-".join([word.lower() for word in words if word not in ("Exception", "Error")][:5]) or "new-rule"


def _rule_text(id_: str, events: Sequence[LogEvent], firing: Firing, near_miss: str) -> str:
    """Return the text of the rule file.

    Args:
        events: the pasted events; the first one determines severity and component.
        firing: the events of the firing tests.
        near_miss: the text of the silent test; empty for none.
    """
    first = events[0]
    items = _items(events)
    names = {capture.name for _, pattern in items for capture in compile_pattern(pattern).captures}
    entity = next((keys for keys in _ENTITIES if names.issuperset(keys)), ())
    cause = _as_template(dict(items).get("reason") or items[0][1])
    headline = cause.partition(":")[0] if "reason" in dict(items) else cause
    subject = "-".join(f"{{{key}}}" for key in entity)
    component = next((name for start, name in _COMPONENTS.items() if first.logger.startswith(start)), "any")
    parts = (
        f"id: {id_}\n",
        entry("title", ": ".join(part for part in (subject, headline) if part)),
        f"status: experimental\nseverity: {_LEVELS.get(first.level, 'low')}\ncomponent: {component}\n",
        "detection:\n",
        *(folded(name, pattern, 2) for name, pattern in items),
        f"  condition: {_condition([name for name, _ in items])}\n",
        f"entity: [{', '.join(('cluster', *entity))}]\n",
        _runbook(cause),
        _tests(firing, near_miss),
    )
    return "".join(parts)


def _items(events: Sequence[LogEvent]) -> list[tuple[str, str]]:
    """Return (name, pattern) of the detection's items: for each shape of message one, and one for the reason of its exception;
    names are numbered from the second shape on."""
    reasons = {len(event.message.split()): _reason(event) for event in reversed(events)}
    items = []
    for number, pattern in enumerate(merged([propose(event.message).pattern for event in events]), 1):
        suffix = f"_{number}" if number > 1 else ""
        items.append((f"message{suffix}", pattern))
        if reason := reasons.get(len(pattern.split())):
            items.append((f"reason{suffix}", propose(reason).pattern))
    return items


def _condition(names: Sequence[str]) -> str:
    """Return the condition over items: each message and its reason joined by `and`, the shapes by `or`."""
    groups: list[list[str]] = []
    for name in names:
        if name.startswith("message"):
            groups.append([])
        groups[-1].append(name)
    return " or ".join(f"({' and '.join(group)})" if len(group) > 1 < len(groups) else " and ".join(group) for group in groups)


def _as_template(pattern: str) -> str:
    """Return the first words of `pattern` as a template: without a leading part in brackets, with holes without types."""
    words = HOLE.sub(_hole_of_template, re.sub(r"^\[[^\]]*\] ", "", pattern))
    return words if len(words) <= _TITLE else words[:_TITLE].rpartition(" ")[0] + " ..."


def _hole_of_template(hole: re.Match[str]) -> str:
    return hole[0] if hole[0].startswith("\\") else f"{{{hole['name']}}}" if hole["name"] else "..."


def _runbook(cause: str) -> str:
    return (
        "runbook:\n"
        + entry("cause", f"{MARK} why this happens. The log says: {cause}", 2)
        + entry("impact", f"{MARK} what stops working, and for whom", 2)
        + "  fix:\n"
        + entry("- do", f"{MARK} the first thing to do", 4)
    )


def _tests(firing: Firing, near_miss: str) -> str:
    text = "tests:\n"
    for log, captures in firing.items():
        fires = ", ".join(f"{key}: {scalar(str(value))}" for key, value in captures.items())
        text += _log(log) + f"    fires: {{{fires}}}\n"
    return text + (_log(near_miss) + "    silent: true\n" if near_miss else "")


def _log(text: str) -> str:
    return literal("- log", text, 2).replace("\n  ", "\n    ")
