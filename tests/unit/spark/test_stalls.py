"""One stall for whatever cannot be read, known from batch to batch; what is said is the difference of two offsets."""

from __future__ import annotations

from msgspec.structs import replace

from engine.codec import loads
from engine.spark.stalls import Failure, Stall, notices, stalled_sources, updated_stalls

FIRST = Failure("prod", "one", "k1:9092", "Connection refused")
SECOND = replace(FIRST, source="two")


def texts(before: tuple[Stall, ...], after: tuple[Stall, ...], at_s: int) -> list[str]:
    return [notice.text for _, notice in notices(before, after, at_s)]


def test_sources_that_wait_for_the_same_are_one_stall_in_each_scope() -> None:
    found = updated_stalls((), [SECOND, FIRST, replace(FIRST, scope="test", source="three")], 100, 60)
    assert [(stall.scope, stall.resource, stall.sources) for stall in found] == [
        ("prod", "k1:9092", ("one", "two")),
        ("test", "k1:9092", ("three",)),
    ]
    assert stalled_sources(found) == {"one", "two", "three"}


def test_a_stall_is_said_when_it_begins_when_it_has_lasted_and_when_it_ends() -> None:
    begun = updated_stalls((), [FIRST], 100, 60)
    assert texts((), begun, 100) == ["cannot read 'k1:9092': Connection refused; looking again until it can be read"]
    lasting = updated_stalls(begun, [FIRST, SECOND], 159, 60)
    assert texts(begun, lasting, 159) == []
    timed_out = replace(FIRST, why="timed out")
    long = updated_stalls(lasting, [timed_out], 160, 60)
    assert texts(lasting, long, 160) == ["'k1:9092' has not been readable for 60 s: timed out"]
    longer = updated_stalls(long, [timed_out], 300, 60)
    assert texts(long, longer, 300) == []
    over = updated_stalls(longer, [], 301, 60)
    assert over == ()
    assert texts(longer, over, 301) == ["'k1:9092' is readable again after 201 s; reading goes on where it ended"]


def test_another_trouble_of_the_same_source_is_another_stall() -> None:
    begun = updated_stalls((), [FIRST], 100, 60)
    gone = updated_stalls(begun, [replace(FIRST, resource="the topic one", why="does not exist")], 200, 60)
    assert [(stall.resource, stall.since_s, stall.reported) for stall in gone] == [("the topic one", 200, False)]


def test_what_is_passed_over_is_said_once_and_nobody_waits_for_it() -> None:
    heap = Failure("prod", "one", "/var/log/a.hprof", "is not text", waits=False)
    begun = updated_stalls((), [heap], 100, 60)
    assert texts((), begun, 100) == ["cannot read '/var/log/a.hprof': is not text; passed over until it can be"]
    assert not stalled_sources(begun)
    later = updated_stalls(begun, [heap], 1000, 60)
    assert texts(begun, later, 1000) == []
    assert not any(stall.reported for stall in later)
    assert texts(later, (), 1001) == ["'/var/log/a.hprof' is gone, or can be read now"]


def test_a_server_that_does_not_answer_is_said_in_words_of_its_own_and_nobody_waits_for_it() -> None:
    asked = Failure("prod", "one", "http://c:8083", "it cannot be reached", asked=True)
    begun = updated_stalls((), [asked], 100, 60)
    assert texts((), begun, 100) == ["cannot ask 'http://c:8083': it cannot be reached; asking again until it answers"]
    assert not stalled_sources(begun)
    long = updated_stalls(begun, [asked], 160, 60)
    assert texts(begun, long, 160) == ["'http://c:8083' has not answered for 60 s: it cannot be reached"]
    assert texts(long, (), 175) == ["'http://c:8083' answers again after 75 s"]


def test_a_stall_of_an_earlier_checkpoint_is_read() -> None:
    earlier = '{"scope": "prod", "what": "k1:9092", "why": "refused", "since_s": 100, "sources": ["one"], "told": true}'
    assert loads(earlier, Stall) == Stall("prod", "k1:9092", "refused", 100, ("one",), reported=True)
