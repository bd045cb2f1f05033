"""One stall for whatever cannot be read, known from batch to batch; what is said is the difference of two offsets."""

from __future__ import annotations

from engine.errors import SourceAway
from engine.spark.stalls import Stall, notices, renewed, stalled

REFUSED = SourceAway("k1:9092", "Connection refused")
FIRST, SECOND = ("prod", "one"), ("prod", "two")


def texts(before: tuple[Stall, ...], after: tuple[Stall, ...], at_s: int) -> list[str]:
    return [notice.text for _, notice in notices(before, after, at_s)]


def test_sources_that_wait_for_the_same_are_one_stall_in_each_scope() -> None:
    found = renewed((), {SECOND: REFUSED, FIRST: REFUSED, ("test", "three"): REFUSED}, 100, 60)
    assert [(stall.scope, stall.what, stall.sources) for stall in found] == [
        ("prod", "k1:9092", ("one", "two")),
        ("test", "k1:9092", ("three",)),
    ]
    assert stalled(found) == {"one", "two", "three"}


def test_a_stall_is_said_when_it_begins_when_it_has_lasted_and_when_it_ends() -> None:
    begun = renewed((), {FIRST: REFUSED}, 100, 60)
    assert texts((), begun, 100) == ["cannot read 'k1:9092': Connection refused; looking again until it can be read"]
    lasting = renewed(begun, {FIRST: REFUSED, SECOND: REFUSED}, 159, 60)
    assert texts(begun, lasting, 159) == []
    timed_out = SourceAway("k1:9092", "timed out")
    long = renewed(lasting, {FIRST: timed_out}, 160, 60)
    assert texts(lasting, long, 160) == ["'k1:9092' has not been readable for 60 s: timed out"]
    longer = renewed(long, {FIRST: timed_out}, 300, 60)
    assert texts(long, longer, 300) == []
    over = renewed(longer, {}, 301, 60)
    assert over == ()
    assert texts(longer, over, 301) == ["'k1:9092' is readable again after 201 s; reading goes on where it ended"]


def test_another_trouble_of_the_same_source_is_another_stall() -> None:
    begun = renewed((), {FIRST: REFUSED}, 100, 60)
    gone = renewed(begun, {FIRST: SourceAway("the topic one", "does not exist")}, 200, 60)
    assert [(stall.what, stall.since_s, stall.told) for stall in gone] == [("the topic one", 200, False)]
