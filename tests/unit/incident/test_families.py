"""Rules that may make one incident are decided together; what others say changes nothing for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from engine.incident import MemoryLedger, group
from engine.incident.families import families, relatives
from engine.model.incidents import Alert, Incident, Key, Roster, Verdict
from tests.spark.finals import plan

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)


class Asked(MemoryLedger):
    """A ledger that remembers of which rules it was asked for alerts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Collection[str] | None] = []

    def alerts(self, scope: str, rules: Collection[str] | None = None) -> Mapping[Key, tuple[Alert, ...]]:
        self.asked.append(rules)
        return super().alerts(scope, rules)


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
    assert ledger.asked == [None, known["broker-disk-full"], None]


def test_what_is_not_linked_stays_as_it_is() -> None:
    ledger = MemoryLedger()
    opened = revisions(ledger, verdict("broker-heap-oom"), verdict("broker-disk-full"))
    known = families(plan())
    assert known["broker-heap-oom"] != known["broker-disk-full"]
    again = revisions(ledger, verdict("broker-disk-full", 1))
    assert {incident.rule for incident in opened} == {"broker-heap-oom", "broker-disk-full"}
    assert {incident.rule for incident in again} <= {"broker-disk-full"}
    assert [i.status for i in ledger.incidents("prod") if i.rule == "broker-heap-oom"] == ["open"]
