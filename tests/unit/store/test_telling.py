"""When a receiver is told again: status, root and severity; never for growing counts."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.model.incidents import Incident
from engine.store.telling import reason_to_tell, told

OPEN = Incident(
    id="inc-1",
    key=("default", "a", ()),
    revision=1,
    rule="a",
    title="A",
    severity="high",
    status="open",
    component="any",
    labels={},
    first_seen=None,
    last_seen=None,
    resolved_at=None,
    count=1,
    cause="",
    impact="",
)
RESOLVED = replace(OPEN, status="resolved", resolved_at=datetime(2022, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (None, OPEN, "opened"),
        (None, RESOLVED, "opened"),
        (None, replace(OPEN, status="merged"), None),
        (None, replace(OPEN, status="retracted"), None),
        (None, replace(OPEN, pending=True), None),
        (OPEN, replace(OPEN, count=7, revision=2), None),
        (OPEN, RESOLVED, "resolved"),
        (OPEN, replace(OPEN, status="merged", merged_into="inc-0"), "merged"),
        (OPEN, replace(OPEN, status="retracted"), "updated"),
        (OPEN, replace(OPEN, rule="b"), "root_changed"),
        (OPEN, replace(OPEN, severity="critical"), "updated"),
        (OPEN, replace(OPEN, stage="c"), "updated"),
        (RESOLVED, OPEN, "updated"),
    ],
)
def test_why_a_receiver_is_told(before: Incident | None, now: Incident, reason: str | None) -> None:
    assert reason_to_tell(told(before) if before else None, now) == reason
