"""Which of many are told together, and what stands for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.model.notifications import FLOOD_RULE, Delivery, Reason
from engine.route import Candidate, flood_digest, overflow, urgency
from engine.route.floods import LONGEST_QUEUE, SINGLES
from tests.unit.cli.incidents import incident

NOON = datetime(2023, 2, 3, 12, tzinfo=UTC)


def candidate(number: int, severity: str = "low", **entry: Any) -> Candidate:
    made = Delivery("ops", f"inc-{number}", 1, Reason.OPENED, NOON, NOON + timedelta(seconds=number))
    return Candidate(replace(made, **entry), incident(id=f"inc-{number}", severity=severity))


def many(number: int, severity: str = "low") -> list[Candidate]:
    return [candidate(n, severity) for n in range(number)]


@pytest.mark.parametrize(
    ("due", "recent", "folded"),
    [
        (many(SINGLES), 0, 0),
        (many(SINGLES + 1), 0, SINGLES + 1),
        (many(1), SINGLES, 1),
        (many(1), SINGLES - 1, 0),
        (many(SINGLES + 1, "high"), 0, 0),
        (many(SINGLES, "medium") + many(LONGEST_QUEUE, "critical"), 0, SINGLES),
        (many(LONGEST_QUEUE + 3, "critical"), 0, 3),
    ],
)
def test_what_is_too_much_is_folded_and_severe_ones_last(due: list[Candidate], recent: int, folded: int) -> None:
    chosen = overflow(due, recent)
    assert len(chosen) == folded
    assert sorted(map(urgency, due))[len(due) - folded :] == sorted(map(urgency, chosen)), "the least urgent"


@pytest.mark.parametrize("changes", [{"marks": {"ts": "1"}}, {"unsure_since": NOON}, {"reason": Reason.DIGEST}])
def test_what_has_a_message_or_may_have_one_is_not(changes: dict[str, Any]) -> None:
    kept = candidate(0, **changes)
    assert kept not in overflow([kept, *many(3 * SINGLES)], 0)


def test_it_says_how_many_of_what_and_the_worst_first() -> None:
    members = [
        incident(id=f"inc-{n}", rule="a", title="A is slow", severity="low", labels={"broker": str(n)}) for n in range(1200)
    ]
    members.append(incident(rule="b", title="B is late", severity="medium", labels={"topic": "t"}))
    members.append(incident(rule="c", title="C was down", severity="critical", status="resolved", labels={}))
    digest = flood_digest("flood-1", members)
    assert (digest.id, digest.rule, digest.severity, digest.count) == ("flood-1", FLOOD_RULE, "medium", 1202)
    assert digest.title == "1,202 incidents at once: 1,201 still open"
    assert [(symptom.count, symptom.title) for symptom in digest.symptoms] == [
        (1, "critical: C was down"),
        (1, "medium: B is late (topic=t)"),
        (1200, "low: such as A is slow (broker=0; broker=1; broker=2 and 1,197 more)"),
    ]


def test_what_is_all_over_is_severe_no_more() -> None:
    assert flood_digest("flood-1", [incident(status="resolved")]).severity == "info"
