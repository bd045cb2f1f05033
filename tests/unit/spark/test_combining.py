"""What is combined on its way says what it would have said one by one: the same final incidents, however it is cut."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.incident import MemoryLedger, group
from engine.model.incidents import Alert, Evidence, NotEvaluated, Roster, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.rules import Absence, Clear, Plan
from engine.spark import combining
from engine.spark.combining import MatchBatch, combine, expand
from engine.spark.rows import BatchRow, item, row
from engine.spark.scope import ScopeState
from engine.spark.slices import stages
from tests.building import absence, at, broker, correlation, counting, match, plan, seen, signature, tick
from tests.spark.finals import finals

pytestmark = pytest.mark.slow


def through(found: Iterable[Match | ActivitySpan]) -> list[BatchRow]:
    """The items of a slice as they come out on the other side of Spark."""
    return [item(kind, body) for _, kind, body in (row("x", each) for each in combine(found))]


def told(items: Iterable[BatchRow]) -> list[Match]:
    """Every match there is among items, combined or not."""
    return [found for each in items for found in (expand(each) if isinstance(each, MatchBatch) else [each])]  # type: ignore[misc]


def test_alike_matches_are_one_row_and_come_back_as_they_were() -> None:
    storm = [replace(match("r", n / 10, topic="t", offset=n), number=n, origin=f"x:i/{n}" if n % 3 else "") for n in range(50)]
    other = [match("r", 1, source="b.log"), match("r", 1, labels={"pod": "1"}), match("s", 1)]
    rows = through([*storm, *other])
    assert len(rows) == 4
    assert sorted(told(rows), key=repr) == sorted([*storm, *other], key=repr)


def test_matches_of_other_items_are_another_row() -> None:
    storm = [replace(match("r", n), items=("login",) if n % 2 else ()) for n in range(20)]
    rows = through(storm)
    assert len(rows) == 2
    assert sorted(told(rows), key=repr) == sorted(storm, key=repr)


def test_a_row_is_bounded_in_matches_and_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "MAX_MATCHES", 10)
    monkeypatch.setattr(combining, "MAX_TEXT_CHARS", 100)
    few = through([match("r", n) for n in range(25)])
    assert sorted(len(each.at) for each in few if isinstance(each, MatchBatch)) == [5, 10, 10]
    long = through([replace(match("r", n), text="x" * 60) for n in range(4)])
    assert [len(each.at) for each in long if isinstance(each, MatchBatch)] == [2, 2]


def test_a_source_names_itself_as_often_as_it_takes() -> None:
    lines = [match("component:broker/names", n, member=member) for n in range(20) for member in "12"]
    found = told(through([*lines[:2], *lines]))  # a line that is delivered twice is one
    assert {(each.captures["member"], each.event_id) for each in found} == {
        (m.captures["member"], m.event_id) for m in lines[:4]
    }
    beats = [match("component:broker/heartbeat", n, beat=0, every_s=600.0) for n in range(20)]
    assert told(through(beats)) == beats


RULES: Plan = plan(
    signature("bare", entity=("cluster", "topic")),
    signature("quick", clear=Clear(0, 0.0, ("back",), 0.0)),
    signature("collapsed", collapse_s=5.0),
    signature("distinct", distinct=("offset",)),
    signature("back"),
    counting("many", ["bare", "quick"], 4, 3.0),
    absence("pause", Absence("bare", 4.0), entity=("cluster",)),
    components=(broker(),),
)
KINDS = ("bare", "quick", "collapsed", "distinct", "back", "component:broker/names")
EVENTS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 3)), max_size=60)


def happened(events: Sequence[tuple[str, int, int]]) -> Iterator[Match | ActivitySpan]:
    """Matches at quarters of a second from two sources; the same event may come twice."""
    for kind, quarter, number in events:
        said = {"member": str(number % 2)} if kind.startswith("component:") else {"topic": f"t{number % 2}", "offset": number}
        source = f"{'ab'[number // 2]}.log"
        yield match(kind, quarter / 4, source, **said)
        yield seen(source, quarter / 4, quarter / 4)


def final(batches: Iterable[Sequence[BatchRow]]) -> list[Any]:
    """The final incidents of batches, with their evidence, and the members known."""
    compiled, state, ledger = stages(RULES), dict[str, str](), MemoryLedger()
    last: list[BatchRow] = [seen("a.log", 9000, 9000), seen("b.log", 9000, 9000), tick(9000)]
    for batch in (*batches, last):
        said = ScopeState(compiled, "x", state, bounded=False).take(batch)
        list(group([each for each in said if isinstance(each, Verdict | Evidence | Roster)], RULES, ledger))
    return [*finals(ledger.incidents("x")), repr(ledger.roster("x"))]


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 60), max_size=3), st.randoms(use_true_random=False))
def test_combined_gives_the_incidents_of_what_was_combined(
    events: list[tuple[str, int, int]], cuts: list[int], chance: random.Random
) -> None:
    borders = [0, *sorted(cuts), len(events)]
    slices = [list(happened(events[start:end])) for start, end in pairwise(borders)]
    shuffled = [through(each) for each in slices]
    for rows in shuffled:
        chance.shuffle(rows)
    assert final(shuffled) == final(slices)


@settings(max_examples=10, deadline=None)
@given(st.integers(300, 700), st.integers(0, 200), st.integers(1, 40))
def test_a_storm_that_is_folded_is_the_same_storm(count: int, again: int, per_second: int) -> None:
    storm = [match("bare", n / per_second, topic="t", size=n * 7 % 1000) for n in range(count)]
    repeated = storm[count - again :]
    assert final([through(storm), through(repeated)]) == final([storm, repeated])


def test_thousands_of_pairs_in_one_batch_hide_no_unanswered_one() -> None:
    pair = correlation("pair", "pair", ["open"], 60.0, expect=("done",), entity=("topic",), clear=Clear(in_s=86400.0))
    compiled = stages(plan(signature("open", severity="info"), signature("done", severity="info"), pair))
    busy = [match(name, 200.0 * n + late, topic="t") for n in range(4000) for name, late in (("open", 0), ("done", 1))]
    missing = [each for each in busy if each.at != at(200.0 * 1500 + 1)]
    said = ScopeState(compiled, "x", {}, bounded=False).take([*through([*missing, seen("a.log", 0, 900_000)])])
    told: tuple[Alert, ...] = ()
    for each in said:
        told = each.over(told) if isinstance(each, Verdict) and each.key[1] == "pair" else told
    assert [alert.starts_at for alert in told] == [at(200.0 * 1500)]
    assert not [each for each in said if isinstance(each, NotEvaluated)]
