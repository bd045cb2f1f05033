"""Three broker-days of each generation of Kafka raise nothing: restarted as planned, idle and under load."""

from __future__ import annotations

import pytest

from tests.rulepack.broker_days import VERSIONS, day
from tests.rulepack.playing import play


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True], ids=["idle", "loaded"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_day_on_which_nothing_is_wrong(version: str, loaded: bool) -> None:
    found = play(day(version, loaded))
    assert [(incident.rule, incident.title, incident.pending) for incident in found] == []
