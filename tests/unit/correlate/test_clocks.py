"""How far time has come, by event time; ticks only tell who has stopped."""

from msgspec.structs import replace

from engine.correlate.clocks import Clocks
from tests.building import at, progress, tick


def clocks(**newest: float) -> Clocks:
    made = Clocks()
    for source, seconds in newest.items():
        made.heard(source, at(0), at(seconds))
    return made


def test_nothing_is_complete_before_anything_was_heard() -> None:
    assert Clocks().complete_until() is None


def test_the_slowest_source_less_the_lateness() -> None:
    assert clocks(a=100, b=500).complete_until() == at(70)


def test_a_file_read_to_its_final_end_no_longer_holds_the_others_back() -> None:
    made = clocks(a=100, b=500)
    made.progress(progress("a", closed=True))
    assert made.complete_until() == at(470)
    made.progress(progress("b", closed=True))
    assert made.complete_until() == at(70)


def test_a_source_leaves_after_two_minutes_of_ticks_without_moving() -> None:
    made = clocks(a=100, b=500)
    made.ticked(tick(1000))
    made.ticked(tick(1119.9))
    made.heard("b", at(500), at(600))
    assert made.complete_until() == at(70)
    made.ticked(tick(1120))
    assert made.complete_until() == at(570)
    made.heard("a", at(550), at(550))
    assert made.complete_until() == at(520)


def test_when_all_have_stopped_all_remain() -> None:
    made = clocks(a=100, b=500)
    made.ticked(tick(1000))
    made.ticked(tick(2000))
    assert made.complete_until() == at(70)


def test_ticks_never_go_back() -> None:
    made = clocks(a=100)
    made.ticked(tick(1000))
    made.ticked(tick(10))
    assert made.tick == at(1000)


def test_a_tick_of_a_clock_that_was_set_back_counts_unless_a_line_is_later_than_that() -> None:
    made = clocks(a=100)
    made.ticked(tick(86400))
    assert made.peer_time([at(90)]) == at(90), "far from what is heard, the tick stands in for nobody"
    made.ticked(replace(tick(200), set_back=True))
    made.progress(progress("a"))
    assert (made.tick, made.peer_time([at(90)])) == (at(200), at(200))
    made.ticked(tick(320))
    assert made.states()["a"].moved == at(200)
    made.heard("a", at(1000), at(1000))
    made.ticked(replace(tick(300), set_back=True))
    assert made.tick == at(320)


def test_peer_time_is_the_second_newest_or_the_only_one() -> None:
    assert Clocks().peer_time([]) is None
    assert Clocks().peer_time([at(5)]) == at(5)
    assert Clocks().peer_time([at(5), at(9), at(7)]) == at(7)


def test_progress_of_a_file_holds_for_the_containers_printed_into_it() -> None:
    made = clocks(**{"out.log#kafka-1": 5})
    assert not made.caught_up("out.log#kafka-1")
    made.progress(progress("out.log"))
    assert made.caught_up("out.log#kafka-1")
    assert made.sources() == ["out.log#kafka-1"]


def test_states_continue() -> None:
    made = clocks(a=100, b=500)
    made.ticked(tick(1000))
    made.progress(progress("a", closed=True))
    again = Clocks(made.states(), made.tick)
    assert again.complete_until() == made.complete_until() == at(470)
    assert again.states() == made.states()


def test_what_stands_still_leaves_two_minutes_after_it_moved_last_in_another_process_too() -> None:
    made = clocks(a=100, b=500)
    made.ticked(tick(1000))
    made.heard("a", at(101), at(101))
    for now in (1110, 1119.9):
        made = Clocks(made.states(), made.tick)
        made.ticked(tick(now))
        made.heard("a", at(101), at(101))  # nothing new
        made.heard("b", at(500), at(now))
        assert made.complete_until() == at(71)
    made.ticked(tick(1120))
    assert made.complete_until() == at(1119.9 - 30)


def test_of_what_printed_nothing_no_time_is_known() -> None:
    made = clocks(a=100)
    made.progress(progress("b"))
    made.ticked(tick(50))
    assert (made.newest("b"), made.newest("c"), made.ahead("b"), made.newest("a")) == (None, None, False, at(100))


def test_the_revision_grows_with_what_is_new_and_with_nothing_else() -> None:
    made = clocks(a=100)
    for news in (
        lambda: made.heard("a", at(0), at(101)),
        lambda: made.progress(progress("a")),
        lambda: made.progress(progress("a", closed=True)),
        lambda: made.ticked(tick(9)),
        lambda: made.ticked(tick(10)),
    ):
        before = made.revision
        news()
        assert made.revision > before
        again = made.revision
        news()
        assert made.revision == again
