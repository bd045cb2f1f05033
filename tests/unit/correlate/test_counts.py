"""An entity that cannot be evaluated is given up: its matches and its room among the entities go, the others stay."""

from __future__ import annotations

import pytest

from engine.correlate import Correlator
from engine.model.incidents import NotEvaluated, Verdict
from engine.quarantine import Quarantine
from tests.building import match, plan, signature, tick
from tests.poison import EVER_S

FAILS = plan(signature("fails", entity=("topic",), for_s=EVER_S))


def test_an_entity_that_fails_again_and_again_takes_no_room_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.correlate.entity_limit.MOST_PLACES", 5)
    quarantine = Quarantine(str)
    correlator = Correlator(FAILS, "default", quarantine=quarantine)
    for second in range(20):
        correlator.observe(tick(second))
        correlator.observe(match("fails", second, topic="x"))
        findings = correlator.flush()
        assert [finding for finding in findings if isinstance(finding, Verdict)] == []
        assert [f.why for f in findings if isinstance(f, NotEvaluated) and "kept apart" in f.why] == []
    assert len(quarantine.taken()) == 20
