"""Rules that distinguish digits: events of a class with the same outcome of their tests are decided once, and as the matcher
decides each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engine.columns.deciding import ClassFields, Decider
from engine.match import Matcher
from engine.match.fields import Fields
from engine.model.matches import Value
from engine.model.records import LogEvent, RawLine, Record
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap, unwrap_line
from tests.rulepack.playing import plan

REFUSED = (
    "[2022-10-05 17:05:00,{ms}] WARN [Producer clientId=p-1] Connection to node {node} (kafka-2/10.0.0.2:9092) could not be "
    "established. Broker may not be available. (org.apache.kafka.clients.NetworkClient)"
)

_Matched = Sequence[tuple[str, Mapping[str, Value], tuple[str, ...]]]


def _record(line: str, rules: Plan) -> Record:
    return unwrap_line(RawLine("a.log", 0, line.encode(), 1), rules.formats)


def _event(line: str, rules: Plan) -> LogEvent:
    lines = [RawLine("a.log", 0, line.encode(), 1)]
    (event,) = decode(assemble(unwrap(lines, rules.formats), rules.formats), rules.formats)
    assert isinstance(event, LogEvent)
    return event


def test_outcomes_are_decided_once_and_as_the_matcher_does() -> None:
    rules = plan()
    matcher = Matcher(rules)
    lines = [REFUSED.format(ms=ms, node=f"-{node}") for node in (1, 2, 1, 2) for ms in (100, 200, 300)]
    event_class, _ = Decider(rules, matcher).decide([_record(lines[0], rules)])
    assert event_class.open is not None
    for line in lines:
        event = _event(line, rules)
        matched: _Matched = [
            *((shape.rule_id, shape.captures.of(line.encode()), shape.items) for shape in event_class.matches),
            *event_class.open.hits(ClassFields(Fields(event).text, lambda event=event: event)),  # type: ignore[misc]
        ]
        expected = [(match.rule_id, match.captures, match.items) for match in matcher.match_event(event)]
        assert sorted(matched, key=repr) == sorted(expected, key=repr)
        assert any(re.search("unreachable", rule_id) for rule_id, _, _ in matched)
    assert len(event_class.open._shapes) == 2
