"""What is finally said depends on the set of what was read: not on order, batches, restarts or lines delivered twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.correlate import Correlator
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.matches import Match
from engine.model.rules import Absence, Clear, Escalation, Sooner, Stop
from tests.building import absence, at_least, broker, correlation, counting, match, plan, progress, seen, setting, signature
from tests.unit.correlate.saying import in_batches

pytestmark = pytest.mark.slow

SOURCES = ("1.log", "2.log", "3.log")
LONG = (Escalation("critical", Binary(">", NameExpression("lasting"), Literal(100))),)
PLAN = plan(
    signature("hit", entity=("cluster", "topic"), clear=Clear(0, 300.0), runbook=setting("broker", "message.max.bytes")),
    signature("own", entity=("cluster", "broker"), component="broker", versions=(("<=", "2.6"),)),
    signature("near", collapse_s=60.0, clear=Clear(0, 300.0, ("fine",), 30.0), for_s=30.0),
    signature("once", distinct=("offset",), severity="info"),
    signature("fine", severity="info"),
    signature("lost", severity="info"),
    signature("stopping", severity="info"),
    counting("often", ["hit", "near"], 3, 120.0, clear=Clear(1, 120.0)),
    absence(
        "silent",
        Absence("broker", 0.0, Sooner(("lost",), {"broker": "node"}, 60.0, ("fine",)), Stop(("stopping",), 60.0)),
    ),
    absence("not-back", Absence("broker", 600.0, after=Stop(("stopping",), 60.0))),
    absence("pause", Absence("once", 300.0), entity=("cluster",)),
    correlation("several", "value_count", ["hit"], 200.0, condition=at_least(2), field="topic", clear=Clear(0, 200.0)),
    counting("both", ["hit", "near"], 2, 120.0, clear=Clear(0, 120.0, ("fine",), 30.0), for_s=60.0),
    correlation("first-then", "temporal_ordered", ["lost", "near", "fine"], 240.0, clear=Clear(0, 240.0)),
    correlation("sizes", "value_count", ["own"], 300.0, condition=at_least(3), field="size", escalate=LONG),
    correlation("unanswered", "pair", ["lost"], 90.0, expect=("fine",), entity=("node",), clear=Clear(0, 600.0)),
    counting("again", ["often", "near"], 3, 600.0),
    counting("of-both", ["again", "unanswered", "sizes"], 2, 900.0),
    components=(broker(),),
)

TIMES = st.integers(0, 40).map(lambda n: n * 30.0)
MATCHES = st.one_of(
    st.builds(
        lambda s, src, t, d: match("hit", s, src, d, topic=t),
        TIMES,
        st.sampled_from(SOURCES),
        st.sampled_from("ab"),
        st.booleans(),
    ),
    st.builds(lambda s, src: match("hit", s, src), TIMES, st.sampled_from(SOURCES)),
    st.builds(lambda s, src, n: match("own", s, src, size=n), TIMES, st.sampled_from(SOURCES), st.integers(0, 5)),
    st.builds(lambda s, src: match("near", s, src), TIMES, st.sampled_from(SOURCES)),
    st.builds(lambda s, o: match("once", s, offset=o), TIMES, st.integers(0, 4)),
    st.builds(
        lambda s, src, n: match("config:KafkaConfig", s, src, **{"message.max.bytes": str(n)}),
        TIMES,
        st.sampled_from(SOURCES),
        st.integers(1, 3),
    ),
    st.builds(lambda r, s: match(r, s, "2.log", node=1), st.sampled_from(["fine", "lost"]), TIMES),
    st.builds(lambda s: match("stopping", s, "1.log"), TIMES),
    st.builds(lambda s, src: match("component:broker/names", s, src, member=src[0]), TIMES, st.sampled_from(SOURCES)),
    st.builds(lambda s, v: match("component:broker/version", s, "1.log", version=v), TIMES, st.sampled_from(["2.6", "3.0"])),
    st.builds(
        lambda s, src: match("component:broker/heartbeat", s, src, beat=0, every_s=600.0), TIMES, st.sampled_from(SOURCES)
    ),
)
SPANS = st.builds(lambda src, s, n: seen(src, s, s + n), st.sampled_from(SOURCES), TIMES, st.sampled_from([0, 20, 600]))
READ = [progress(source) for source in SOURCES]
LATER = [seen(source, 5000, 5000) for source in ("2.log", "3.log")]


def batches(items: Sequence[object], borders: Sequence[int]) -> list[Sequence[object]]:
    cuts = [0, *sorted(min(border, len(items)) for border in borders), len(items)]
    return [items[a:b] for a, b in pairwise(cuts)]


@settings(max_examples=settings().max_examples * 4 // 5, deadline=None)
@given(st.lists(st.one_of(MATCHES, SPANS), min_size=1, max_size=40), st.booleans(), st.data())
def test_any_order_any_batches_any_restart(items: list[object], go_on: bool, data: st.DataObject) -> None:
    whole = in_batches([[*items, *(LATER if go_on else []), *READ]], PLAN, restart=False)
    again = data.draw(st.lists(st.sampled_from(items), max_size=5))
    order = data.draw(st.permutations([*items, *again, *(LATER if go_on else [])]))
    borders = data.draw(st.lists(st.integers(0, 45), max_size=4))
    restart = data.draw(st.booleans())
    assert in_batches([*batches(order, borders), READ], PLAN, restart) == whole


@settings(max_examples=settings().max_examples * 3 // 20, deadline=None)
@given(st.integers(1, 3000), st.integers(50, 400), st.integers(0, 1000))
def test_a_storm_keeps_its_count_in_any_order(length: int, size: int, seed: int) -> None:
    random = Random(seed)
    storm = [match("hit", random.randrange(length) * 2.0, topic="a", serial=n) for n in range(600)]
    whole = in_batches([storm], PLAN, restart=False)
    shuffled = random.sample(storm, len(storm))
    parts = [shuffled[a : a + size] for a in range(0, len(shuffled), size)]
    assert in_batches(parts, PLAN, restart=True) == whole
    (alert,) = (alert for key, found in whole.items() if key[1] == "hit" for alert in found)
    assert alert.count == len(storm)


def test_a_storm_is_bounded_in_state() -> None:
    state: dict[str, str] = {}
    correlator = Correlator(PLAN, "default", state)
    for number in range(5000):
        correlator.observe(match("hit", number * 7.0, topic="a", serial=number))
    correlator.flush()
    small = len(state["hit"])
    for number in range(5000, 10000):
        correlator.observe(match("hit", number * 7.0, topic="a", serial=number))
    correlator.flush()
    assert len(state["hit"]) < small * 1.5


def test_a_match_delivered_again_long_after_a_storm_is_not_counted_again() -> None:
    storm = [match("hit", float(n), topic="a", serial=n) for n in range(2000)]
    said = in_batches([storm, [match("hit", 3.0, topic="a", serial=3)]], PLAN, restart=True)
    assert [a.count for key, found in said.items() if key[1] == "hit" for a in found] == [2000]


def test_matches_of_one_event_are_independent() -> None:
    one, other = match("hit", 0, topic="a"), match("near", 0)
    same = Match(other.rule_id, one.event_id, one.source_id, one.number, one.at, True, {}, one.labels, one.text)
    said = in_batches([[one, same]], PLAN, restart=False)
    assert sorted(key[1] for key in said) == ["both", "hit", "near"]
