"""From an incident to its picture: who takes part, and what happened to whom."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.model.incidents import AlertCourse
from engine.picture import Deed, describe
from engine.picture.describing import DEEDS_LANE, MAX_LANES
from engine.picture.description import BACK, BEATS, PERSON, ROOT, SILENCE, SYMPTOM, TOLD, Lane, Picture
from tests.unit.cli.incidents import AT, incident
from tests.unit.picture.stories import incidents, restarted

FIRST = AlertCourse("root", "one", "One", "high", AT, AT, None, 1, {"broker": "1"}, ("b1.log",))


def pictured(*courses: AlertCourse, deeds: tuple[Deed, ...] = (), silence: bool = False) -> Picture:
    picture = describe(incident(course=(FIRST, *courses), is_silence=silence), deeds)
    assert picture is not None
    return picture


def kinds(lane: Lane) -> list[str]:
    return [mark.kind for mark in lane.marks]


@pytest.mark.slow  # plays a story
def test_the_silent_broker_has_its_heartbeats_its_gap_the_complaints_and_the_restart() -> None:
    picture = describe(restarted())
    assert picture is not None
    lanes = {lane.name: lane for lane in picture.lanes}
    assert list(lanes) == ["broker 1", "dump.txt", "broker 2", "broker 3"]
    dead = lanes["broker 1"]
    assert dead.is_root and kinds(dead) == [BEATS, SILENCE, BACK]
    beats, gap, back = dead.marks
    assert [f"{at:%H:%M}" for at in beats.times] == ["07:05", "07:15", "07:25", "07:35", "07:45", "07:55", "08:05"]
    assert gap.begin == beats.end, "the last heartbeat is the last sign of life"
    assert f"{gap.end:%H:%M:%S}" == f"{back.begin:%H:%M:%S}" == "10:21:03"
    assert "silent for 2 h 15 min" in gap.sentence
    for name in ("broker 2", "broker 3"):
        assert lanes[name].marks[0].kind == BEATS and SYMPTOM in kinds(lanes[name])
        complaint = next(mark for mark in lanes[name].marks if "cannot fetch from broker 1" in mark.label)
        assert (complaint.count, complaint.begin > gap.begin) == (8, True)


@pytest.mark.slow  # plays a story
def test_a_silence_that_lasts_has_no_end() -> None:
    (silent,) = incidents("4")
    picture = describe(silent)
    assert picture is not None
    gap = next(mark for mark in picture.lanes[0].marks if mark.kind == SILENCE)
    assert gap.end is None and "not heard from since" in gap.sentence


def test_there_is_no_picture_without_times() -> None:
    assert describe(incident(course=())) is None


def test_a_line_is_in_the_lane_of_its_writer_and_the_root_in_that_of_its_subject() -> None:
    about = replace(FIRST, labels={"node": "3"}, sources=("b1.log",))
    by_label = replace(FIRST, role=SYMPTOM, labels={"broker": "1", "node": "3"}, sources=("b1.log",))
    by_source = replace(FIRST, role=SYMPTOM, labels={"topic": "a"}, sources=("b1.log",), title="of the same file")
    unknown = replace(FIRST, role=SYMPTOM, labels={}, sources=("logs/other.log",))
    picture = describe(incident(course=(about, by_label, by_source, unknown)))
    assert picture is not None
    assert {lane.name: len(lane.marks) for lane in picture.lanes} == {"node 3": 1, "broker 1": 2, "other.log": 1}


def test_values_that_stand_for_others_name_no_lane() -> None:
    picture = describe(incident(course=(replace(FIRST, labels={"broker": "?*"}),)))
    assert picture is not None
    assert [lane.name for lane in picture.lanes] == ["b1.log"]


def test_many_lanes_share_the_last() -> None:
    more = [replace(FIRST, role=SYMPTOM, labels={"broker": str(n)}, sources=()) for n in range(2, 40)]
    picture = pictured(*more)
    assert len(picture.lanes) == MAX_LANES
    assert sum(len(lane.marks) for lane in picture.lanes) == 39
    assert picture.lanes[0].is_root and picture.lanes[-1].name == "28 others"


def test_what_was_done_has_the_last_lane_and_what_came_long_after_no_place_on_the_axis() -> None:
    soon, late = AT + timedelta(minutes=2), AT + timedelta(days=900)
    picture = pictured(deeds=(Deed(soon, PERSON, "acknowledged by mina"), Deed(late, TOLD, "ops was told: resolved")))
    assert picture.lanes[-1].name == DEEDS_LANE
    assert [mark.label for mark in picture.lanes[-1].marks] == ["acknowledged by mina"]
    assert [mark.label for mark in picture.later] == ["ops was told: resolved"]
    assert picture.end == soon
    assert [mark.kind for _, mark in picture.in_order()] == [ROOT, PERSON, TOLD]


def test_a_storm_is_one_mark_that_knows_its_number() -> None:
    offsets = (*range(25), *range(1000, 1025))
    storm = replace(FIRST, role=SYMPTOM, last=AT + timedelta(seconds=1024), count=123_456, offsets_s=offsets)
    (mark,) = [mark for mark in pictured(storm).lanes[0].marks if mark.kind == SYMPTOM]
    assert mark.is_storm and mark.count == 123_456
    assert "123,456 events within 17 min 4 s" in mark.sentence
