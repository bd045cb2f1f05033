from __future__ import annotations

from engine.correlate import StateCache
from engine.correlate.deltas import StoredDeltas
from engine.correlate.keyed_state import KeyedState
from engine.correlate.wiring import wiring_of
from tests.rulepack.playing import plan


def logic(rule_id: str) -> KeyedState:
    return wiring_of(plan()).makers[rule_id]()


ISR, SILENT = logic("broker-isr-shrink"), logic("broker-silent")


def test_a_logic_is_taken_by_who_has_the_state_that_it_left() -> None:
    resting = StateCache()
    resting.put("a", ISR, StoredDeltas("new", 3))
    assert resting.take("b", ISR.rule_id, StoredDeltas("new", 3)) is None
    assert resting.take("a", ISR.rule_id, StoredDeltas("new", 3)) is ISR
    assert resting.take("a", ISR.rule_id, StoredDeltas("new", 3)) is None, "somebody uses it already"


def test_a_batch_that_is_done_again_finds_none() -> None:
    resting = StateCache()
    resting.put("a", ISR, StoredDeltas("after the batch", 9))
    assert resting.take("a", ISR.rule_id, StoredDeltas("before the batch", 9)) is None
    assert resting.take("a", ISR.rule_id, StoredDeltas("after the batch", 9)) is None, (
        "it knows of a batch that may be another one now"
    )


def test_what_has_rested_longest_is_dropped_when_it_is_too_much() -> None:
    resting = StateCache(most_chars=10)
    for scope in "abc":
        resting.put(scope, SILENT, StoredDeltas("of which", 3, 2, 2))
    assert [resting.take(scope, SILENT.rule_id, StoredDeltas("of which", 3, 2, 2)) for scope in "abc"] == [None, SILENT, SILENT]
