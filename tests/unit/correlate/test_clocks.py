"""How far time has come, by event time; ticks only tell who has stopped."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, permutations, tuples
from msgspec.structs import replace

from engine.correlate.clocks import Clocks
from tests.building import at, progress, tick


def clocks(**newest: float) -> Clocks:
    made = Clocks()
    for source, seconds in newest.items():
        made.add_activity(source, at(0), at(seconds))
    return made


def test_nothing_is_complete_before_anything_was_heard() -> None:
    assert Clocks().watermark() is None


def test_the_slowest_source_less_the_lateness() -> None:
    assert clocks(a=100, b=500).watermark() == at(70)


def test_a_file_read_to_its_final_end_no_longer_holds_the_others_back() -> None:
    made = clocks(a=100, b=500)
    made.add_progress(progress("a", closed=True))
    assert made.watermark() == at(470)
    made.add_progress(progress("b", closed=True))
    assert made.watermark() == at(70)


def test_a_source_leaves_after_two_minutes_of_ticks_without_moving() -> None:
    made = clocks(a=100, b=500)
    made.add_tick(tick(1000))
    made.add_tick(tick(1119.9))
    made.add_activity("b", at(500), at(600))
    assert made.watermark() == at(70)
    made.add_tick(tick(1120))
    assert made.watermark() == at(570)
    made.add_activity("a", at(550), at(550))
    assert made.watermark() == at(520)


def test_when_all_have_stopped_all_remain() -> None:
    made = clocks(a=100, b=500)
    made.add_tick(tick(1000))
    made.add_tick(tick(2000))
    assert made.watermark() == at(70)


def test_ticks_never_go_back() -> None:
    made = clocks(a=100)
    made.add_tick(tick(1000))
    made.add_tick(tick(10))
    assert made.tick == at(1000)


def test_a_tick_of_a_clock_that_was_set_back_counts_unless_a_line_is_later_than_that() -> None:
    made = clocks(a=100)
    made.add_tick(tick(86400))
    assert made.peer_time([at(90)]) == at(90), "far from what is heard, the tick stands in for nobody"
    made.add_tick(replace(tick(200), set_back=True))
    made.add_progress(progress("a"))
    assert (made.tick, made.peer_time([at(90)])) == (at(200), at(200))
    made.add_tick(tick(320))
    assert made.states()["a"].moved == at(200)
    made.add_activity("a", at(1000), at(1000))
    made.add_tick(replace(tick(300), set_back=True))
    assert made.tick == at(320)


def test_peer_time_is_the_second_newest_or_the_only_one() -> None:
    assert Clocks().peer_time([]) is None
    assert Clocks().peer_time([at(5)]) == at(5)
    assert Clocks().peer_time([at(5), at(9), at(7)]) == at(7)


def test_progress_of_a_file_holds_for_the_containers_printed_into_it() -> None:
    made = clocks(**{"out.log#kafka-1": 5})
    assert not made.caught_up("out.log#kafka-1")
    made.add_progress(progress("out.log"))
    assert made.caught_up("out.log#kafka-1")
    assert made.sources() == ["out.log#kafka-1"]


def test_states_continue() -> None:
    made = clocks(a=100, b=500)
    made.add_tick(tick(1000))
    made.add_progress(progress("a", closed=True))
    again = Clocks(made.states(), made.tick)
    assert again.watermark() == made.watermark() == at(470)
    assert again.states() == made.states()


def test_what_stands_still_leaves_two_minutes_after_it_moved_last_in_another_process_too() -> None:
    made = clocks(a=100, b=500)
    made.add_tick(tick(1000))
    made.add_activity("a", at(101), at(101))
    for now in (1110, 1119.9):
        made = Clocks(made.states(), made.tick)
        made.add_tick(tick(now))
        made.add_activity("a", at(101), at(101))  # nothing new
        made.add_activity("b", at(500), at(now))
        assert made.watermark() == at(71)
    made.add_tick(tick(1120))
    assert made.watermark() == at(1119.9 - 30)


def test_of_what_printed_nothing_no_time_is_known() -> None:
    made = clocks(a=100)
    made.add_progress(progress("b"))
    made.add_tick(tick(50))
    assert (made.newest("b"), made.newest("c"), made.ahead("b"), made.newest("a")) == (None, None, False, at(100))


def test_the_revision_grows_with_what_is_new_and_with_nothing_else() -> None:
    made = clocks(a=100)
    for news in (
        lambda: made.add_activity("a", at(0), at(101)),
        lambda: made.add_progress(progress("a")),
        lambda: made.add_progress(progress("a", closed=True)),
        lambda: made.add_tick(tick(9)),
        lambda: made.add_tick(tick(10)),
    ):
        before = made.revision
        news()
        assert made.revision > before
        again = made.revision
        news()
        assert made.revision == again


def printed(*stamps: float, order: Sequence[int] | None = None) -> Clocks:
    """Return the clock of a source that printed lines with these stamps, one after the other; heard of in another `order`."""
    made = Clocks()
    for place in order or range(len(stamps)):
        made.add_activity("a", at(stamps[place]), at(stamps[place]), place)
    return made


DEAD = [0, 600, 1200, 9000, 1800]  # the fourth line is stamped ahead


def test_a_stamp_ahead_of_what_was_printed_before_and_after_it_shows_nothing() -> None:
    made = printed(*DEAD)
    assert (made.newest("a"), made.watermark()) == (at(1800), at(1770))
    assert [(gap.since, gap.until) for gap in made.spans(["a"]).gaps()][-1] == (at(1800), None)
    assert made.contradicts_itself("a")
    assert (made.vouches("a", at(9000)), made.vouches("a", at(1800)), made.vouches("b", at(9000))) == (False, True, True)


@given(permutations(range(len(DEAD))))
def test_what_is_believed_does_not_depend_on_the_order_in_which_it_was_heard_of(order: list[int]) -> None:
    assert list(printed(*DEAD, order=order).spans(["a"])) == list(printed(*DEAD).spans(["a"]))


def test_what_is_believed_is_stored() -> None:
    made = printed(*DEAD)
    again = Clocks(made.states())
    assert (again.newest("a"), again.contradicts_itself("a")) == (at(1800), True)


def test_time_that_reaches_the_stamp_confirms_it() -> None:
    assert printed(*DEAD, 8970, 9010).newest("a") == at(9010)
    assert not printed(*DEAD, 8970, 9010).contradicts_itself("a")


@pytest.mark.parametrize(
    "stamps",
    [
        pytest.param([9000, 1800, 1200, 600, 0], id="the newest first"),
        pytest.param([0, 600, 1200, 9000], id="the last line"),
        pytest.param([0, 600, 1500, 1210, 2000], id="less than five minutes"),
        pytest.param([0, 600, 700, 610, 1200], id="two that write by turns"),
    ],
)
def test_what_nothing_denies_is_believed(stamps: list[float]) -> None:
    assert printed(*stamps).newest("a") == at(max(stamps))


def test_without_places_nothing_is_denied() -> None:
    made = Clocks()
    for stamp in DEAD:
        made.add_activity("a", at(stamp), at(stamp))
    assert made.newest("a") == at(9000)


def test_a_clock_that_was_put_back_is_believed_from_then_on() -> None:
    assert printed(0, 3600, 7200, 10800, 3700, 4300).newest("a") == at(4300)


@given(lists(tuples(integers(0, 40), booleans()), min_size=1, max_size=12))
def test_what_is_told_line_by_line_is_what_all_of_it_is(lines: list[tuple[int, bool]]) -> None:
    made, again = Clocks(), Clocks()
    told = [(at(minute * 120), place if placed else None) for place, (minute, placed) in enumerate(lines)]
    for stamp, place in told:
        made.add_activity("a", stamp, stamp, place)
    for stamp, place in sorted(told, key=lambda line: (line[0], line[1] or 0)):
        again.add_activity("a", stamp, stamp, place)
    assert list(made.spans(["a"])) == list(again.spans(["a"])) == list(Clocks(made.states()).spans(["a"]))
