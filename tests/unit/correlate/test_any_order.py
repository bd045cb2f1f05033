"""Every type of correlation, on histories dense enough that it fires: order, slices, restarts and repeats change nothing."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.correlate.deltas import SMALL
from engine.model.matches import Match
from engine.model.rules import Clear, Correlation, Plan
from tests.building import at_least, correlation, counting, match, plan, replaying, seen, signature
from tests.unit.correlate.saying import Said, in_batches

pytestmark = pytest.mark.slow

SHORT = Clear(in_s=40.0)
NOT_DURING = ("replaying",)
EDGES = ("component:node/replaying/0/begins", "component:node/replaying/0/ends")
NESTED = counting("inner", ["a"], 2, 30.0, entity=("topic",), clear=Clear(in_s=30.0), severity="info")
RULES = (
    counting("event_count", ["a", "b"], 3, 30.0, clear=Clear(1, 30.0)),
    correlation("value_count", "value_count", ["a", "b"], 30.0, condition=at_least(3), field="topic", clear=SHORT),
    correlation("temporal_ordered", "temporal_ordered", ["a", "b", "a"], 30.0, entity=("topic",), clear=SHORT),
    correlation("pair", "pair", ["a"], 20.0, expect=("b", "c"), entity=("topic",), clear=Clear(in_s=100.0)),
    correlation("nested", "event_count", ["inner", "c"], 60.0, condition=at_least(4), clear=SHORT),
)


def rules(tested: Correlation) -> Plan:
    named = [signature(name, severity="info", not_during=NOT_DURING if name == "a" else ()) for name in "abc"]
    return plan(*named, NESTED, tested, components=[replaying()])


def history(random: Random) -> list[Match]:
    """Return lines of three rules in two sources, thirty times within five minutes; in one of them a state comes and goes."""
    edges = [match(random.choice(EDGES), random.randrange(60) * 5.0, "1.log") for _ in range(4)]
    return edges + [
        match(
            random.choice("aabc"),
            random.randrange(60) * 5.0,
            random.choice(("1.log", "2.log")),
            topic=random.choice("xyz"),
            n=random.randrange(9),
        )
        for _ in range(30)
    ]


def end(random: Random) -> object:
    """Return how far time has come: into the history, or far beyond."""
    reached = random.choice((150.0, 2000.0))
    return seen("clock", reached, reached)


def said(tested: Correlation, batches: list[list[object]], restart: bool) -> Said:
    return {key: alerts for key, alerts in in_batches(batches, rules(tested), restart).items() if key[1] == tested.rule.id}


@pytest.mark.parametrize("tested", RULES, ids=lambda tested: tested.rule.id)
@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(random=st.randoms(use_true_random=False), restart=st.booleans(), pieces=st.booleans())
def test_what_is_said_depends_on_the_set_of_lines(tested: Correlation, random: Random, restart: bool, pieces: bool) -> None:
    lines: list[object] = [*history(random), end(random)]
    again = [*lines, *random.choices(lines, k=5)]
    random.shuffle(again)
    cuts = [0, *sorted(random.randrange(len(again)) for _ in range(4)), len(again)]
    with patch("engine.correlate.deltas.SMALL", 0 if pieces else SMALL):
        assert said(tested, [again[low:high] for low, high in pairwise(cuts)], restart) == said(tested, [lines], False)


@pytest.mark.parametrize("tested", RULES, ids=lambda tested: tested.rule.id)
def test_the_histories_make_it_fire(tested: Correlation) -> None:
    fired = sum(bool(said(tested, [[*history(Random(seed)), seen("clock", 2000.0, 2000.0)]], False)) for seed in range(20))
    assert fired >= 2
