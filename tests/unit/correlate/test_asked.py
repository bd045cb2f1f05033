"""What a cluster says when it is asked: how long it holds, what it contradicts, what it verifies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.correlate.asked import ASKED_ANEW, NO_WORDS, ClusterWords, StateWord, is_about, may_be_about, thing_of, words_of
from engine.correlate.entries import Entry
from engine.correlate.episodes import Episode, Signal, episodes
from engine.correlate.windows import Occurrences, Sliding
from engine.model.rules import Clear

T0 = datetime(2026, 11, 26, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LASTING = Clear(rules=("started", "running"), in_s=0.0, quiet_s=30.0, unless=("failed",), back=("better",))


def at(minutes: float) -> datetime:
    return T0 + minutes * MINUTE


def bad(minutes: float, thing: str = "") -> StateWord:
    return StateWord(at(minutes), thing, is_bad=True)


def good(minutes: float, thing: str = "") -> StateWord:
    return StateWord(at(minutes), thing, is_bad=False, verifies=True)


def better(minutes: float, thing: str = "") -> StateWord:
    return StateWord(at(minutes), thing, is_bad=False)


def only(signals: Sequence[Signal], words: Sequence[StateWord], *more: float, now: float = 500) -> Episode:
    """Return the one episode of lines at minute 0 and at the minutes `more`."""
    (episode,) = all_of(signals, words, *more, now=now)
    return episode


def all_of(signals: Sequence[Signal], words: Sequence[StateWord], *more: float, now: float = 500) -> list[Episode]:
    lines = [Entry(at(minute), at(minute), at(minute), 1, ()) for minute in (0, *more)]
    opening = Sliding(Occurrences, lambda count: count >= 1, timedelta(seconds=1))
    return episodes(lines, signals, opening, LASTING, at(now), words_of(words))


def started(minutes: float) -> Signal:
    return at(minutes), "started"


def running(minutes: float) -> Signal:
    return at(minutes), "running"


def ended(episode: Episode) -> tuple[float, str] | None:
    return None if episode.ending is None else ((episode.ending.at - T0) / MINUTE, episode.ending.why)


def test_an_end_by_an_answer_is_verified() -> None:
    assert ended(only([running(3)], [good(3)])) == (3, "verified at 00:03 UTC by asking the cluster")


def test_an_end_that_a_log_said_first_has_both() -> None:
    both = "started seen; verified at 00:04 UTC by asking the cluster"
    assert ended(only([started(2), running(4)], [good(4)])) == (2, both)
    assert ended(only([started(2)], [])) == (2, "started seen")


def test_a_bad_word_puts_the_end_off_until_a_good_one() -> None:
    words = [bad(1), good(9)]
    assert ended(only([started(2), running(9)], words)) == (9, "verified at 00:09 UTC by asking the cluster")
    open_one = only([started(2), running(9)], words[:1], now=5)
    assert (open_one.ending, open_one.doubt) == (
        None,
        "started seen at 00:02 UTC, but the cluster, asked at 00:01 UTC, says that it is not over",
    )


def test_a_word_that_it_is_better_lets_the_log_decide() -> None:
    assert ended(only([started(2)], [bad(1), better(9)])) == (2, "started seen")
    assert only([], [bad(1), better(9)]).ending is None


def test_a_bad_word_that_is_not_repeated_does_not_hold_for_ever() -> None:
    unasked = "started seen; the cluster has not been asked since"
    assert ended(only([started(2)], [bad(1)])) == (2, unasked)
    assert only([started(2)], [bad(1)], now=70).ending is None
    assert only([started(2)], [bad(1), bad(61), bad(121)], now=190).ending is None
    assert ended(only([started(2)], [bad(1), bad(61), bad(121)], now=192)) == (2, unasked)


def test_one_thing_that_is_still_bad_is_enough() -> None:
    words = [bad(1, "a"), bad(1, "b"), good(5, "a"), good(20, "b")]
    assert ended(only([started(2), running(5), running(20)], words)) == (20, "verified at 00:20 UTC by asking the cluster")


def test_lines_after_a_good_word_are_believed() -> None:
    said = "the cluster, asked at 00:02 UTC, said that it is over, but later lines say that it is not"
    within = only([running(2)], [good(2)], 1.9, 2.2, now=3)
    assert (within.ending, within.doubt) == (None, said)
    first, again = all_of([running(2)], [good(2)], 2.2, now=3)
    assert (first.ending is not None, again.ending, again.doubt) == (True, None, said)
    *_, unrelated = all_of([running(2)], [good(2)], 200, now=201)
    assert unrelated.doubt == ""


def test_without_words_nothing_changes() -> None:
    assert words_of([]) == NO_WORDS == ClusterWords()
    assert only([], []).doubt == ""


@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from("ab"), st.sampled_from((bad, good, better))), max_size=12))
def test_a_contradiction_is_where_the_newest_word_about_a_thing_is_bad_and_not_old(
    drawn: list[tuple[int, str, object]],
) -> None:
    words = [make(minute, thing) for minute, thing, make in drawn]  # type: ignore[operator]
    told = words_of(words)
    assert told == words_of(reversed(words))
    for minute in range(0, 480, 3):
        now = at(minute + 0.5)
        newest = {
            thing: max((w for w in words if w.thing == thing and w.at <= now), key=lambda w: (w.at, w.is_bad), default=None)
            for thing in "ab"
        }
        expected = any(word is not None and word.is_bad and now - word.at < ASKED_ANEW for word in newest.values())
        assert (told.against(now) is not None) == expected


@pytest.mark.parametrize(
    ("values", "entity", "named", "about"),
    [
        ({"connector": "cdc", "task": "0"}, {"cluster": "prod", "connector": "cdc", "task": "0"}, {}, True),
        ({"connector": "cdc", "task": "1"}, {"cluster": "prod", "connector": "cdc", "task": "0"}, {}, False),
        ({"connector": "cdc", "task": None}, {"connector": "cdc", "task": "?log"}, {}, True),
        ({"partition_topic": "a", "partition_partition": "3"}, {"cluster": "prod"}, {}, False),
        (
            {"partition_topic": "a", "partition_partition": "3"},
            {},
            {"partition_topic": ["a"], "partition_partition": ["3"]},
            True,
        ),
        (
            {"partition_topic": "a", "partition_partition": "4"},
            {},
            {"partition_topic": ["a"], "partition_partition": ["3"]},
            False,
        ),
    ],
)
def test_an_answer_is_about_the_entity_or_what_lines_named(
    values: dict[str, str | None], entity: dict[str, str], named: dict[str, list[str]], about: bool
) -> None:
    assert is_about(thing_of(values), entity, named) is about
    assert may_be_about(thing_of(values), entity, named) is about


TEN = [str(number) for number in range(10)]
A_TEN = [f"a-{number}" for number in TEN]
PAIRS = {"partition_topic": ["orders", "pay"], "partition_partition": ["0", "5"]}


@pytest.mark.parametrize(
    ("values", "named", "about", "may_be"),
    [
        (("orders", "0"), {**PAIRS, "partition": ["orders-0", "pay-5"]}, True, True),
        (("orders", "5"), {**PAIRS, "partition": ["orders-0", "pay-5"]}, False, False),
        (("orders", "5"), PAIRS, False, True),  # nobody knows which number belongs to which topic
        (("pay", "5"), {"partition_topic": ["pay"], "partition_partition": ["0", "5"]}, True, True),
        (("a", "3"), {"partition": A_TEN, "partition_topic": ["a"], "partition_partition": TEN}, True, True),
        (
            ("a", "11"),
            {"partition": A_TEN, "partition_topic": ["a"], "partition_partition": TEN},
            False,
            True,
        ),
        (
            ("b", "11"),
            {"partition": A_TEN, "partition_topic": ["a"], "partition_partition": TEN},
            False,
            False,
        ),
    ],
)
def test_an_answer_about_a_partition_is_about_its_topic_and_number_together(
    values: tuple[str, str], named: dict[str, list[str]], about: bool, may_be: bool
) -> None:
    thing = thing_of(dict(zip(PAIRS, values, strict=True)))
    assert is_about(thing, {}, named) is about
    assert may_be_about(thing, {}, named) is may_be
