"""Storms: which incidents become one message, and what that says of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from engine.model.incidents import Incident
from engine.model.notifications import Delivery, DeliveryState, NotificationLog, Reason
from engine.model.routes import Timings
from engine.route.floods import Candidate
from engine.route.storms import EDIT, GROWTH, decide_storm, in_order, storm_digest, storm_id, storm_keys, storming
from tests.unit.cli.incidents import AT, incident

SIZE = 5
RULE, OTHER = "connect-record-too-large-client", "broker-silent"


def member(number: int, rule: str = RULE, cluster: str = "prod", **changes: Any) -> Incident:
    return incident(id=f"inc-{number:02}", rule=rule, key=(cluster, rule, ()), labels={"cluster": cluster}, **changes)


def waiting(number: int, rule: str = RULE, cluster: str = "prod", due_s: float = 0.0, **changes: Any) -> Candidate:
    entry = {"known_at": AT, "due_at": AT + timedelta(seconds=due_s), "reason": Reason.OPENED, **changes}
    return Candidate(Delivery("ops", f"inc-{number:02}", 1, **entry), member(number, rule, cluster))


def chosen(
    candidates: list[Candidate], recent: dict[str, int] | None = None, open_storms: tuple[str, ...] = ()
) -> dict[str, int]:
    return {key: len(part) for key, part in storming(candidates, recent or {}, SIZE, open_storms, AT).items()}


def test_more_than_so_many_of_a_rule_are_a_storm_those_that_still_wait_included() -> None:
    crowd = [waiting(0), *(waiting(n, due_s=29) for n in range(1, SIZE + 1))]
    assert chosen(crowd[:SIZE]) == {}
    assert chosen(crowd) == {f"prod/{RULE}": SIZE + 1}
    assert chosen([waiting(n, due_s=1) for n in range(9)]) == {}, "none of them is due"


def test_those_that_had_a_message_within_the_minute_count() -> None:
    assert chosen([waiting(9)], {f"prod/{RULE}": SIZE - 1}) == {}
    assert chosen([waiting(9)], {f"prod/{RULE}": SIZE}) == {f"prod/{RULE}": 1}


def test_a_cluster_with_many_rules_is_a_storm_and_another_cluster_is_none_of_it() -> None:
    mixed = [waiting(n, rule=f"rule-{n}") for n in range(SIZE + 1)]
    elsewhere = [waiting(90 + n, rule=f"rule-{n}", cluster="test") for n in range(SIZE)]
    assert chosen([*mixed, *elsewhere]) == {"prod/": SIZE + 1}


def test_a_rule_comes_before_its_cluster() -> None:
    candidates = [*(waiting(n) for n in range(SIZE + 3)), *(waiting(50 + n, rule=OTHER) for n in range(2))]
    assert chosen(candidates) == {f"prod/{RULE}": SIZE + 3}


def test_later_ones_join_a_storm_that_is_open() -> None:
    id_ = storm_id(f"prod/{RULE}", AT)
    assert chosen([waiting(0, due_s=30)], open_storms=(id_,)) == {f"prod/{RULE}": 1}
    assert chosen([waiting(0, rule=OTHER)], open_storms=(id_,)) == {}
    assert chosen([waiting(0, reason=Reason.ESCALATED)], open_storms=(id_,)) == {}, "what got worse is told by itself"
    assert chosen([waiting(n, reason=Reason.ESCALATED) for n in range(SIZE + 1)]) == {f"prod/{RULE}": SIZE + 1}


@pytest.mark.parametrize("own", [{"marks": {"ts": "1"}}, {"unsure_since": AT}, {"reason": Reason.RESOLVED}])
def test_one_that_has_or_may_have_a_message_is_never_chosen(own: dict[str, Any]) -> None:
    assert chosen([*(waiting(n) for n in range(SIZE)), waiting(9, **own)]) == {}


def test_what_the_message_says() -> None:
    members = [member(1, severity="low"), member(2, severity="high"), member(3, status="resolved", resolved_at=AT)]
    storm = storm_digest("storm-1", members)
    assert storm.title == f"3 incidents of {RULE} in cluster prod: 2 still open"
    assert (storm.severity, storm.status, storm.component, storm.labels) == ("high", "open", "connect", {"cluster": "prod"})
    assert [symptom.title[:11] for symptom in storm.symptoms] == ["high, open:", "low, open: ", "critical, r"]
    assert "(inc-02)" in storm.symptoms[0].title
    mixed = storm_digest("storm-1", [*members, member(4, rule=OTHER)])
    assert mixed.title == "4 incidents in cluster prod: 3 still open"
    assert [part.id for part in in_order(members)] == ["inc-02", "inc-01", "inc-03"]


def test_it_is_over_when_all_of_it_is() -> None:
    ends = [AT + timedelta(minutes=n) for n in range(3)]
    storm = storm_digest("storm-1", [member(n, status="resolved", resolved_at=at) for n, at in enumerate(ends)])
    assert (storm.status, storm.resolved_at, storm.severity) == ("resolved", ends[-1], "critical")
    taken = [member(0, status="acknowledged"), member(1, status="merged")]
    assert storm_digest("storm-1", taken).status == "acknowledged"


def test_its_revision_changes_with_any_state_and_never_with_the_order() -> None:
    members = [member(1), member(2)]
    assert storm_digest("s", members).revision == storm_digest("s", members[::-1]).revision
    changes: list[dict[str, Any]] = [{"status": "acknowledged"}, {"severity": "low"}, {"revision": 9}]
    others = [storm_digest("s", [members[0], member(2, **change)]).revision for change in changes]
    assert len({storm_digest("s", members).revision, *others}) == 4


def log_of(storm: Incident, at: datetime = AT) -> NotificationLog:
    return NotificationLog(storm.rule, storm.status, storm.severity, at, revision=storm.revision)


@pytest.mark.parametrize("edits", [True, False])
def test_when_and_why_a_receiver_is_told_again(edits: bool) -> None:
    timings = Timings(30.0, 300.0, 4 * 3600.0)
    storm = storm_digest("s", [member(1, severity="low"), member(2, severity="low")])
    log = log_of(storm)

    def decision(members: list[Incident], joined: int = 0) -> tuple[Reason | None, timedelta | None, str]:
        made = decide_storm(log, storm_digest("s", members), joined, timings, AT, edits=edits)
        return made.reason, None if made.at is None else made.at - AT, made.news

    assert decide_storm(None, storm, 2, timings, AT, edits=edits).reason is Reason.DIGEST
    same, more = [member(1, severity="low"), member(2, severity="low")], member(3, severity="low")
    assert decision(same)[:2] == (Reason.REPEATED, timedelta(hours=4))
    grown = (Reason.UPDATED, EDIT, "") if edits else (Reason.DIGEST, GROWTH, "1 more: 3 incidents")
    assert decision([*same, more], 1) == grown
    changed = [same[0], member(2, severity="low", status="resolved")]
    assert decision(changed)[0] is (Reason.UPDATED if edits else Reason.REPEATED)
    assert decision([*same, member(3, severity="high")], 1) == (
        *(Reason.ESCALATED, timedelta(0)),
        "severity is high now, was low: 3 incidents",
    )
    over = [member(n, severity="low", status="resolved") for n in (1, 2)]
    assert decision(over) == (Reason.RESOLVED, timedelta(minutes=5), "all 2 incidents are over")


def test_an_id_names_its_key_and_its_time() -> None:
    first, second = (storm_id(key, AT) for key in storm_keys(member(1)))
    assert first != second
    assert storm_id(storm_keys(member(1))[0], AT) == first
    assert Delivery("ops", first, 1, Reason.DIGEST, AT, AT).state is DeliveryState.QUEUED
