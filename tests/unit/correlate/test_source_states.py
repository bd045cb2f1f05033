"""States of a source: what is printed while it reads old records again does not count (docs/rules.md)."""

from __future__ import annotations

from itertools import permutations

import pytest

from engine.correlate.bindings import Bindings
from engine.correlate.source_states import MAX_EDGES
from engine.match import match as match_stage
from engine.model.incidents import Alert
from engine.model.matches import Match
from engine.model.rules import Clear, Component, Signature, StatePhase
from tests.building import at, correlation, counting, event, match, pattern, plan, replaying, seen, signature
from tests.unit.correlate.saying import alerts, in_batches

BEGINS, ENDS = "component:node/replaying/0/begins", "component:node/replaying/0/ends"
LOST = signature("lost", entity=("topic",), not_during=("replaying",))


def edges(*lines: tuple[str, float], source: str = "a.log") -> Bindings:
    """Return the bindings after lines that begin and end the state."""
    bindings = Bindings([replaying()])
    for id_, seconds in lines:
        bindings.add_line(match(id_, seconds, source))
    return bindings


def replays(bindings: Bindings, seconds: float, source: str = "a.log") -> bool:
    return bindings.during(source, ("replaying",), at(seconds))


@pytest.mark.parametrize(
    ("seconds", "holds"),
    [(9.9, False), (10, True), (15, True), (20, True), (20.1, False), (99, False)],
    ids=["before", "at the beginning", "between", "at the end", "after", "long after"],
)
def test_a_state_goes_from_its_beginning_to_its_end(seconds: float, holds: bool) -> None:
    assert replays(edges((BEGINS, 10), (ENDS, 20)), seconds) is holds


def test_the_order_in_which_its_lines_are_read_does_not_matter() -> None:
    lines = [(BEGINS, 10.0), (ENDS, 20.0), (BEGINS, 30.0), (ENDS, 40.0)]
    held = {tuple(replays(edges(*order), seconds) for seconds in range(0, 50, 5)) for order in permutations(lines)}
    assert held == {(False, False, True, True, True, False, True, True, True, False)}


def test_a_state_that_nothing_ends_lasts_no_longer_than_it_may() -> None:
    assert replays(edges((BEGINS, 0)), 600)
    assert not replays(edges((BEGINS, 0)), 600.1)


def test_a_process_that_died_meanwhile_begins_anew() -> None:
    assert replays(edges((BEGINS, 0), (BEGINS, 500), (ENDS, 900)), 899)


def test_an_end_without_a_beginning_is_nothing() -> None:
    assert not replays(edges((ENDS, 20)), 10)


def test_a_log_that_was_rotated_meanwhile_is_one() -> None:
    bindings = edges((BEGINS, 10), source="server.log.1")
    bindings.add_line(match(ENDS, 20, "server.log"))
    assert replays(bindings, 15, "server.log")
    assert not replays(bindings, 25, "server.log.1")
    assert not replays(bindings, 15, "other.log")
    again = Bindings([replaying()], bindings.identities)
    assert replays(again, 15, "server.log")
    assert not replays(again, 25, "server.log")


def test_the_newest_lines_are_kept() -> None:
    many = [(BEGINS, float(n)) for n in range(MAX_EDGES + 50)]
    assert edges(*many).identities == edges(*reversed(many)).identities
    assert [len(times) for times in edges(*many).identities["a.log"].edges.values()] == [MAX_EDGES]


def test_a_line_without_a_stamp_begins_nothing() -> None:
    bindings = Bindings([replaying()])
    bindings.add_line(match(BEGINS, 10, dated=False))
    assert not replays(bindings, 10)
    assert bindings.revision == 0


def told(*items: object, rule: Signature = LOST) -> list[Alert]:
    return alerts(items, plan(rule, components=[replaying()]), "lost")


def lost(seconds: float, topic: str = "x", source: str = "a.log") -> Match:
    return match("lost", seconds, source, topic=topic)


def test_what_is_printed_in_it_does_not_count() -> None:
    (alert,) = told(match(BEGINS, 10), lost(15), match(ENDS, 20), lost(25, "y"))
    assert (alert.labels["topic"], alert.count) == ("y", 1)


def test_another_source_is_not_in_it() -> None:
    (alert,) = told(match(BEGINS, 10), lost(15, source="b.log"), match(ENDS, 20))
    assert alert.sources == ("b.log",)


def test_other_rules_do_not_ask() -> None:
    (alert,) = told(match(BEGINS, 10), lost(15), match(ENDS, 20), rule=signature("lost", entity=("topic",)))
    assert alert.count == 1


@pytest.mark.parametrize("restart", [False, True], ids=["same process", "new processes"])
@pytest.mark.parametrize(
    "batches",
    [
        [[match(BEGINS, 10)], [lost(15)], [match(ENDS, 20)], [lost(25, "y")]],
        [[lost(25, "y"), match(ENDS, 20)], [lost(15)], [match(BEGINS, 10)]],
        [[match(BEGINS, 10), lost(15)], [lost(25, "y")], [match(ENDS, 20)]],
    ],
    ids=["in order", "backwards", "its end last"],
)
def test_it_outlives_batches_and_processes(batches: list[list[object]], restart: bool) -> None:
    final = in_batches(batches, plan(LOST, components=[replaying()]), restart)
    firing = [alert.labels["topic"] for of_key in final.values() for alert in of_key if alert.status != "retracted"]
    assert firing == ["y"]


def test_of_very_many_matches_the_sums_are_asked_too() -> None:
    in_state = [lost(10 + n / 1000) for n in range(500)]
    assert told(match(BEGINS, 10), *in_state, match(ENDS, 20)) == []
    (alert,) = told(match(BEGINS, 10), *in_state, match(ENDS, 20), *(lost(65 + n) for n in range(500)))
    assert alert.count == 500
    (alert,) = told(match(BEGINS, 10), *in_state, match(ENDS, 20), *(lost(25 + n) for n in range(500)))
    assert alert.count == 1000, "of a sum that reaches out of the state nothing is left out"


def test_a_correlation_counts_none_of_it() -> None:
    counted = counting("many", ["lost"], 3, 60.0, clear=Clear(in_s=60.0))
    made = plan(signature("lost", severity="info", not_during=("replaying",)), counted, components=[replaying()])
    items = [match(BEGINS, 10), lost(11), lost(12), match(ENDS, 20), lost(21), lost(22)]
    assert alerts(items, made, "many") == []
    assert len(alerts([*items, lost(23)], made, "many")) == 1


def test_a_correlation_may_ask_itself() -> None:
    counted = counting("many", ["lost"], 2, 60.0, clear=Clear(in_s=60.0), not_during=("replaying",))
    made = plan(signature("lost", severity="info"), counted, components=[replaying()])
    assert alerts([match(BEGINS, 10), lost(11), lost(12), match(ENDS, 20)], made, "many") == []


def test_nothing_opens_a_pair_in_it() -> None:
    pair = correlation("pair", "pair", ["lost"], 30.0, expect=("back",), entity=("topic",), clear=Clear(in_s=600.0))
    rules = (signature("lost", severity="info", not_during=("replaying",)), signature("back", severity="info"), pair)
    made = plan(*rules, components=[replaying()])
    items = [match(BEGINS, 10), lost(15), match(ENDS, 20), lost(25, "y"), seen("a.log", 900, 900)]
    assert [alert.labels["topic"] for alert in alerts(items, made, "pair")] == ["y"]


def test_the_lines_are_those_of_the_process_itself() -> None:
    phase = StatePhase((pattern("begun"),), (pattern("caught up"),), 600.0)
    component = Component(
        "node", "node", (pattern(r"node=(\d+)", "member"),), loggers=("org.node",), states={"replaying": (phase,)}
    )
    events = [
        event("begun", 1, logger="org.node.Starter"),
        event("it said begun", 2, logger="org.node.Starter"),
        event("begun", 3, logger="com.example.Quoting"),
        event("caught up", 4, logger=""),
    ]
    matches = [item for item in match_stage(events, plan(components=[component])) if isinstance(item, Match)]
    assert [(item.rule_id, item.at) for item in matches] == [(BEGINS, at(1)), (ENDS, at(4))]
