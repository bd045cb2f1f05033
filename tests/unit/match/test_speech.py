"""A line is a process's own word where it begins the message, and comes from a logger of its own packages."""

from __future__ import annotations

import pytest
import re2

from engine.match import Matcher
from engine.match.speech import below
from engine.model.expressions import NameExpression
from engine.model.rules import Component, Item, Signature
from tests.building import event, pattern, plan, rule

NODE = pattern(r"\[Node\s+([0-9]+)\]", "member")
STOPS = pattern(r"\[Node\s+([0-9]+)\]\s+stops", "node")


@pytest.mark.parametrize(
    ("logger", "own"),
    [
        ("org.example.kafka.server.Server", True),
        ("o.e.k.s.Server", True),
        ("o.e.kafka.s.Server", True),
        ("Server", True),
        ("Server$", True),
        ("org.example.kafka", True),
        ("org.example.kafkaesque.Orders", False),
        ("org.example.orders.Orders", False),
        ("com.app.Foo", False),
        ("root", False),
        ("x.org.example.kafka.Server", False),
    ],
)
def test_loggers_are_known_abbreviated_or_not(logger: str, own: bool) -> None:
    assert bool(re2.search(below(("org.example.kafka",)), logger)) == own


def matched(text: str, message: str, logger: str, loggers: tuple[str, ...] = ("org.example",)) -> list[str]:
    spoken = Signature(rule("stopping"), (Item("line", ((STOPS.at_beginning(),),)),), NameExpression("line"), loggers=loggers)
    component = Component("node", "node", (NODE,), loggers=loggers)
    made = plan(spoken, components=(component,))
    return [match.rule_id for match in Matcher(made).match_event(event(text, message=message, logger=logger))]


OWN = ["component:node/names", "stopping"]


def test_it_begins_the_message_by_a_logger_of_its_own_or_by_none() -> None:
    assert matched("INFO [Node 1] stops", "[Node 1] stops", "org.example.Node") == OWN
    assert matched("INFO [Node 1] stops", "[Node 1] stops", "") == OWN
    assert matched("INFO [Node 1] stops", "[Node 1] stops", "com.app.Foo") == []
    assert matched("INFO he read [Node 1] stops", "he read [Node 1] stops", "org.example.Node") == []
    assert matched("INFO he read [Node 1] stops", "he read [Node 1] stops", "") == []


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("[] INFO [Node 1] stops", True),
        ("09:47:01 [main | orders] INFO  [Node 1] stops", True),
        ("09:47:01 [main] INFO com.app.Foo - [Node 1] stops", False),
        ("order 7: INFO [Node 1] stops", False),
    ],
)
def test_of_a_line_whose_header_nobody_knows_it_stands_behind_the_level(line: str, own: bool) -> None:
    assert matched(line, line, "") == (OWN if own else [])


def test_a_component_without_loggers_is_named_anywhere() -> None:
    assert matched("he read [Node 1] stops", "he read [Node 1] stops", "com.app.Foo", ()) == ["component:node/names"]
