"""The stages of a proof, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from connectors.memory import MemoryReceiver
from engine.cli.doctor.diagnosis import VitalSign, VitalState
from engine.cli.proving.course import ProofClocks, ProofCourse, ProofOutcome, missing_part
from engine.cli.proving.inlets import Inlet
from engine.errors import SourceDenied
from engine.model.notifications import DeliveryState, Receipt
from engine.model.proofs import PROOF_RULE, Proof
from engine.model.statuses import JobStatus, StreamStatus
from engine.store import Store
from tests.unit.deliver.scene import START, Scene

SIGNS = (
    VitalSign("job", "", VitalState.OFF, "hangs"),
    VitalSign("receiver", "ops", VitalState.OFF, "refuses"),
    VitalSign("clocks", "", VitalState.OFF, "differ"),
    VitalSign("store", "", VitalState.OK, "well"),
)


@pytest.fixture
def ops() -> MemoryReceiver:
    return MemoryReceiver()


class Road:
    """A job and a notifier that do their part while the proof waits; time passes by its looks only."""

    def __init__(self, store: Store, receiver: MemoryReceiver) -> None:
        self.scene = Scene(store, {"ops": receiver})
        self.seconds = 0.0
        self.reads, self.reads_after_s = True, 0.0
        self.put: list[str] = []

    def pause(self, seconds: float) -> None:
        self.seconds += seconds
        if self.put and self.reads and self.seconds >= self.reads_after_s:
            self.reads = False
            self.scene.put(rule=PROOF_RULE, labels={"cluster": "default", "proof": "abc"}, severity="low")
        self.scene.at(self.seconds)

    def run(self, receiver: str = "ops", put: Callable[[Proof, str], str] | None = None) -> ProofOutcome:
        def into_log(_proof: Proof, line: str) -> str:
            self.put.append(line)
            return "a.log"

        clocks = ProofClocks(lambda: self.seconds, self.pause, lambda: START + timedelta(seconds=self.seconds))
        proof = Proof("abc", receiver, START + timedelta(minutes=10))
        course = ProofCourse(self.scene.store, proof, clocks, 5.0, lambda: SIGNS)
        return course.run(Inlet("files default a.log", put or into_log))


def names(outcome: ProofOutcome) -> list[str]:
    return [stage.name for stage in outcome.stages]


def test_a_line_that_comes_through_passes_every_stage_and_is_resolved(store: Store, ops: MemoryReceiver) -> None:
    road = Road(store, ops)
    outcome = road.run()
    assert (names(outcome), outcome.stopped) == (["put", "judged", "told", "resolved"], None)
    assert "tocsin prove abc has put this line here; it means no trouble" in road.put[0]
    assert [sent.reason.value for sent in ops.notifications] == ["opened", "resolved"]
    assert [incident.status for incident in store.incidents()] == ["resolved"]
    assert "the line came through in" in [*outcome.lines("tocsin.yml")][-1]


def test_without_a_receiver_nobody_is_told(store: Store, ops: MemoryReceiver) -> None:
    outcome = Road(store, ops).run(receiver="")
    assert (names(outcome), outcome.stopped, ops.notifications) == (["put", "judged", "resolved"], None, [])


def test_a_line_that_cannot_be_put_stops_there(store: Store, ops: MemoryReceiver) -> None:
    def refuse(_proof: Proof, _line: str) -> str:
        raise SourceDenied("no line can be put there")

    outcome = Road(store, ops).run(put=refuse)
    assert outcome.stopped is not None
    assert (names(outcome), outcome.stopped.name, outcome.stopped.sentence) == ([], "put", "no line can be put there")


def test_a_line_that_is_not_read_stops_with_what_is_off_of_the_parts_before(store: Store, ops: MemoryReceiver) -> None:
    road = Road(store, ops)
    road.reads = False
    outcome = road.run()
    assert outcome.stopped is not None
    assert (names(outcome), outcome.stopped.name) == (["put"], "judged")
    assert outcome.stopped.sentence == "no incident within 5 s: the job has not stored a line of a.log"
    assert [sign.area for sign in outcome.stopped.signs] == ["job"]
    assert "judged     STOPPED  no incident" in "\n".join(outcome.lines("tocsin.yml"))


def test_a_line_of_a_job_that_has_just_started_has_twice_the_time(store: Store, ops: MemoryReceiver) -> None:
    store.statuses().put(JobStatus("it", "0.2.0", START, START))
    road = Road(store, ops)
    road.reads = False
    outcome = road.run()
    assert outcome.stopped is not None
    assert outcome.stopped.sentence.startswith("no incident within 10 s: the job has stored no batch since it started")
    late = Road(store, ops)
    late.reads_after_s = 7.0
    assert late.run().stopped is None


def test_a_line_that_was_read_and_not_judged_is_told(store: Store, ops: MemoryReceiver) -> None:
    store.statuses().put(JobStatus("it", "0.2.0", START, START, 3, streams={"a.log": StreamStatus(lines=1)}))
    road = Road(store, ops)
    road.reads = False
    outcome = road.run()
    assert outcome.stopped is not None
    assert "no incident within 10 s: the job has read a.log, so its rules lack tocsin-proof" in outcome.stopped.sentence


def test_a_receiver_that_refuses_stops_it_with_the_reason(store: Store, ops: MemoryReceiver) -> None:
    ops.answers = [Receipt(DeliveryState.REJECTED, why="no such channel")]
    outcome = Road(store, ops).run()
    assert outcome.stopped is not None
    assert outcome.stopped.sentence == "not within 5 s: rejected, no such channel"
    assert [sign.area for sign in outcome.stopped.signs] == ["receiver"]


def test_what_does_not_run_is_known_before_a_line_is_put() -> None:
    down = VitalSign("notifier", "", VitalState.DOWN, "is not running", remedy="start it")
    assert missing_part((*SIGNS, down), "") is None
    stopped = missing_part((*SIGNS, down), "ops")
    assert stopped is not None
    assert (stopped.name, stopped.remedy) == ("told", "start it")
