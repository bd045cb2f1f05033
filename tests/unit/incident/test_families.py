"""Rules that may make one incident are decided together; what others say changes nothing for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.incident import MemoryLedger, group
from engine.incident.families import beginning, families, relatives
from engine.model.incidents import WHOLE, Alert, Incident, Key, Part, Roster, Span, Verdict
from tests.rulepack.playing import plan

pytestmark = pytest.mark.slow

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)


class Asked(MemoryLedger):
    """A ledger that remembers of which rules it was asked for alerts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Part] = []

    def alerts(self, scope: str, part: Part = WHOLE) -> Mapping[Key, tuple[Alert, ...]]:
        self.asked.append(part)
        return super().alerts(scope, part)


def verdict(rule: str, minute: int = 0) -> Verdict:
    at, key = NOON + timedelta(minutes=minute), ("prod", rule, (("cluster", "prod"), ("broker", "1")))
    return Verdict(key, (Alert(key, "firing", "high", at, at, None, 1, True, {"cluster": "prod", "broker": "1"}),))


def revisions(ledger: MemoryLedger, *findings: Verdict | Roster) -> Sequence[Incident]:
    return list(group(findings, plan(), ledger))


def test_families_hold_every_rule_once_and_everything_it_is_linked_with() -> None:
    known = families(plan())
    rules = plan().rules()
    assert set(known) >= set(rules)
    for rule in rules.values():
        linked = {name for entry in rule.explains for name in entry.rules} | {entry.rule for entry in rule.continues}
        assert linked | {rule.id} <= known[rule.id]
        assert all(known[name] == known[rule.id] for name in known[rule.id])
    assert len(set(known.values())) > 1, "there would be nothing to gain"


def test_a_rule_that_nobody_knows_is_a_family_by_itself() -> None:
    assert relatives(["gone"], families(plan())) == {"gone"}


def test_all_is_decided_once_then_only_what_is_linked_with_what_was_said() -> None:
    ledger, known = Asked(), families(plan())
    revisions(ledger, verdict("broker-heap-oom"))
    revisions(ledger, verdict("broker-disk-full"))
    revisions(ledger, verdict("broker-heap-oom", 1), Roster("prod", {"broker": ("1", "2")}))
    assert ledger.asked == [WHOLE, Part(known["broker-disk-full"]), WHOLE]


def test_what_is_not_linked_stays_as_it_is() -> None:
    ledger, known, one = MemoryLedger(), families(plan()), "broker-heap-oom"
    other = next(r.id for r in plan().rules().values() if r.severity != "info" and known[r.id] != known[one])
    opened = revisions(ledger, verdict(one), verdict(other))
    again = revisions(ledger, verdict(other, 1))
    assert {incident.rule for incident in opened} == {one, other}
    assert {incident.rule for incident in again} <= {other}
    assert [incident.status for incident in ledger.incidents("prod") if incident.rule == one] == ["open"]


def test_what_is_linked_by_time_goes_back_over_gaps_that_are_short_enough() -> None:
    def hours(*pairs: tuple[int, int]) -> list[Span]:
        return [(NOON + timedelta(hours=start), NOON + timedelta(hours=end)) for start, end in pairs]

    spans, now, hour = hours((0, 1), (3, 4), (5, 6), (5, 9), (12, 13)), NOON + timedelta(hours=12), timedelta(hours=1)
    assert beginning(spans, now, hour) == now
    assert beginning(spans, now, 3 * hour) == NOON
    assert beginning(spans, now, 2.5 * hour) == now
    assert beginning(spans, now - 3 * hour, hour) == NOON + timedelta(hours=3)
    assert beginning([], now, hour) == now


class Forgetful(MemoryLedger):
    """A ledger over which everything is decided each time."""

    def judged_by(self, scope: str) -> str | None:
        return None


FAMILY = sorted(max(set(families(plan()).values()), key=len))[:8]
DAY_H = 24
STEPS = st.lists(
    st.tuples(
        st.sampled_from(FAMILY),
        st.sampled_from("12"),
        st.integers(0, 20 * DAY_H),
        st.one_of(st.none(), st.integers(0, 5)),
        st.sampled_from(("add", "add", "add", "drop")),
        st.booleans(),
    ),
    max_size=25,
)


@given(STEPS)
def test_deciding_a_part_gives_what_deciding_everything_gives(steps: list[tuple[str, str, int, int | None, str, bool]]) -> None:
    part, whole = MemoryLedger(), Forgetful()
    for rule, broker, hour, lasts_h, action, all_of_it in steps:
        key: Key = ("prod", rule, (("cluster", "prod"), ("broker", broker)))
        known, at = {alert.starts_at: alert for alert in whole.alerts("prod").get(key, ())}, NOON + timedelta(hours=hour)
        if action == "add":
            known[at] = made(key, at, lasts_h)
        elif known:
            del known[max(known)]
        told = tuple(alert for start, alert in sorted(known.items()) if all_of_it or start >= at)
        for ledger in (part, whole):
            revisions(ledger, Verdict(key, told, None if all_of_it else at))
    assert part.incidents("prod") == whole.incidents("prod")


def made(key: Key, at: datetime, lasts_h: int | None) -> Alert:
    over = None if lasts_h is None else at + timedelta(hours=lasts_h)
    labels = {"cluster": "prod", "broker": dict(key[2])["broker"]}
    return Alert(key, "firing" if over is None else "resolved", "high", at, over or at, over, 1, True, labels)
