"""More entities than are kept apart: which ones are depends on the set of lines alone, and nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest

from engine.correlate import Correlator
from engine.correlate.crowd import Crowd
from engine.correlate.deltas import SMALL
from engine.model.incidents import OTHERS, Alert, NotEvaluated
from engine.model.matches import Match
from engine.model.rules import Clear, Plan
from tests.building import at_least, correlation, counting, match, plan, seen, signature, tick
from tests.unit.correlate.saying import Said, in_batches

MOST = 5
SINGLE = plan(signature("seen", entity=("topic",), clear=Clear(0, 60.0)))
LASTING = plan(signature("seen", entity=("topic",), clear=Clear(0, 600.0)))
OFTEN = plan(signature("seen", severity="info"), counting("often", ["seen"], 2, 30.0, entity=("topic",), clear=Clear(0, 60.0)))
PAIRS = plan(
    signature("a", severity="info"),
    signature("b", severity="info"),
    correlation("pair", "pair", ["a"], 20.0, expect=("b",), entity=("topic",), clear=Clear(in_s=100.0)),
)
VALUES = plan(
    signature("seen", severity="info"),
    correlation("values", "value_count", ["seen"], 3600.0, condition=at_least(3), field="n", entity=("topic",)),
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.correlate.entity_limit.MOST_ENTITIES", MOST)
    monkeypatch.setattr("engine.correlate.entity_limit.MOST_OF_ONE", 10)
    monkeypatch.setattr("engine.correlate.open_table.MAX_KEYS", MOST)


def lines(random: Random, topics: int, many: int, rules: str = "seen") -> list[Match]:
    names = rules.split()
    return [
        match(random.choice(names), random.randrange(500) * 0.5, topic=f"t{random.randrange(topics)}", n=n) for n in range(many)
    ]


def blinds(batches: Iterable[Sequence[object]], made: Plan, restart: bool = False) -> list[str]:
    """Return what is said at the end that is not kept apart."""
    state: dict[str, str] = {}
    correlator, last = Correlator(made, "default", state), list[NotEvaluated]()
    for batch in batches:
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        last = [each for each in correlator.flush() if isinstance(each, NotEvaluated)] or last
        if restart:
            correlator = Correlator(made, "default", state)
    return [each.why for each in last if each.what in ("seen", "often", "pair", "values")]


def apart(said: Said) -> dict[str, Alert]:
    return {dict(key[2])["topic"]: alert for key, alerts in said.items() for alert in alerts if "topic" in dict(key[2])}


@pytest.mark.parametrize("made", [SINGLE, OFTEN, PAIRS, VALUES], ids=["single", "often", "pairs", "values"])
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 20))])
def test_what_is_said_depends_on_the_lines_and_not_on_order_batches_restarts_or_repeats(made: Plan, seed: int) -> None:
    random = Random(seed)
    topics, restart = random.randrange(1, 40), random.random() < 0.5
    every = lines(random, topics, 60, "a b" if made is PAIRS else "seen")
    end = [seen("clock", 4000, 4000)]
    shuffled = random.sample(every, len(every)) + random.choices(every, k=9)
    cuts = sorted(random.randrange(len(shuffled)) for _ in range(4))
    batches = [shuffled[i:j] for i, j in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]
    assert in_batches([*batches, end], made, restart) == in_batches([every, end], made, False)
    assert blinds([*batches, end], made, restart) == blinds([every, end], made)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_all_that_is_not_kept_apart_is_counted_and_told_together(seed: int, restart: bool) -> None:
    every = lines(Random(seed), 40, 200)
    end = [seen("clock", 9000, 9000)]
    said = apart(in_batches([every[:90], [*every[90:], *end]], LASTING, restart))
    topics = {str(each.captures["topic"]) for each in every}
    assert len(topics) > MOST
    together = said.pop(OTHERS)
    assert len(said) == MOST
    counts = {name: sum(each.captures["topic"] == name for each in every) for name in said}
    assert {name: alert.count for name, alert in said.items()} == counts
    assert together.count == 200 - sum(counts.values())
    assert "topic" not in together.captures
    assert "topic" not in together.labels
    assert "are not kept apart" in together.why


def test_entities_within_the_bound_are_all_kept_apart_and_nothing_is_said() -> None:
    every = [match("seen", n, topic=f"t{n % MOST}") for n in range(50)]
    assert set(apart(in_batches([every], SINGLE, False))) == {f"t{n}" for n in range(MOST)}
    assert blinds([every], SINGLE) == []


@pytest.mark.parametrize(
    ("made", "then"),
    [(SINGLE, "told together"), (OFTEN, "not judged"), (PAIRS, "not judged")],
    ids=["single", "often", "pairs"],
)
def test_how_many_are_left_out_and_what_that_means_is_said(made: Plan, then: str) -> None:
    (why,) = blinds([[match("a" if made is PAIRS else "seen", n * 0.1, topic=f"t{n}") for n in range(400)]], made)
    assert why.startswith(f"more than {MOST} entities: about ")
    assert why.endswith(then)


def test_what_counts_together_is_no_threshold_that_somebody_reached() -> None:
    assert OTHERS not in apart(in_batches([[match("seen", 1, topic=f"t{n}") for n in range(400)]], OFTEN, False))


def test_very_many_values_of_one_entity_push_out_no_other() -> None:
    every = [match("seen", n * 0.1, topic="t0", n=n) for n in range(300)]
    every += [match("seen", 40 + n, topic="t1", n=n) for n in range(3)]
    assert set(apart(in_batches([every], VALUES, False))) == {"t0", "t1"}
    assert blinds([every], VALUES) == ["more than 10 values of 1 entities: further ones are not counted"]


def test_entities_without_trouble_push_out_none_with() -> None:
    made = plan(
        signature("seen", entity=("topic",), clear=Clear(in_s=0.0, rules=("fine",))), signature("fine", severity="info")
    )
    fine = [match("fine", n, topic=f"fine-{n}") for n in range(300)]
    said = apart(
        in_batches(
            [fine, [match("seen", 1, topic="t0"), match("fine", 50, topic="t0")], [seen("clock", 900, 900)]], made, False
        )
    )
    assert said["t0"].status == "resolved"


def test_after_a_day_without_a_crowd_all_are_kept_apart_again() -> None:
    storm = [match("seen", n, topic=f"t{n}") for n in range(50)]
    later = 3 * 86_400.0
    calm = [match("seen", later + n, topic=f"new-{n}") for n in range(MOST)]
    ticks = [[seen("a.log", each, each), tick(each)] for each in (60.0, 86_400.0 * 1.5, later - 3700)]
    said = apart(in_batches([[tick(0), *storm], *ticks, calm], SINGLE, True))
    assert {f"new-{n}" for n in range(MOST)} <= set(said)


def test_the_state_of_a_storm_of_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.correlate.entity_limit.MOST_ENTITIES", 500)
    state: dict[str, str] = {}
    for begin in range(0, 5000, 1000):
        correlator = Correlator(SINGLE, "default", state)
        for n in range(begin, begin + 1000):
            correlator.observe(match("seen", n * 0.1, topic=f"a-topic-with-a-name-of-usual-length-{n}"))
        correlator.flush()
    assert sum(map(len, state.values())) < 2000 * 500 + SMALL


@pytest.mark.parametrize("seed", range(20))
def test_who_is_kept_depends_on_the_names_alone(seed: int) -> None:
    random = Random(seed)
    names = [random.randrange(100) for _ in range(random.randrange(150))]

    def kept(order: Sequence[int]) -> tuple[set[int], object]:
        crowd, inside = Crowd[int](7, 20), set[int]()
        for name in order:
            if crowd.admits(name, None):
                inside.add(name)
                inside -= set(crowd.take(name, None))
        return inside, crowd.border

    assert kept(names) == kept(random.sample(names, len(names)))


def test_how_many_are_beyond_is_about_right() -> None:
    crowd = Crowd[int](500)
    for name in range(20_000):
        if crowd.admits(name, None):
            crowd.take(name, None)
    assert abs(crowd.beyond - 19_500) < 2000
