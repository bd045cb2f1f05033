"""What may be linked is decided together; what happens to others changes nothing for it, and costs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.incident import MemoryLedger, group
from engine.incident.affected import AffectedAlerts
from engine.incident.link_table import link_table
from engine.incident.links import link_alerts
from engine.model.incidents import EVER, Alert, AlertInterval, AlertKey, Capture, Incident, Roster, Verdict, interval_of
from tests.rulepack.playing import plan

pytestmark = pytest.mark.slow

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)


class Asked(MemoryLedger):
    """A ledger that remembers which alerts it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[set[str] | None] = []

    def alerts(self, scope: str, seen: Collection[AlertInterval] | None = None) -> Mapping[AlertKey, tuple[Alert, ...]]:
        self.asked.append(None if seen is None else {each.key[1] for each in seen})
        return super().alerts(scope, seen)


def verdict(rule: str, minute: int = 0, broker: str = "1") -> Verdict:
    at, key = NOON + timedelta(minutes=minute), ("prod", rule, (("cluster", "prod"), ("broker", broker)))
    return Verdict(key, (Alert(key, "firing", "high", at, at, at, 1, True, {"cluster": "prod", "broker": broker}),))


def revisions(ledger: MemoryLedger, *findings: Verdict | Roster) -> Sequence[Incident]:
    return list(group(findings, plan(), ledger))


def test_all_is_decided_once_then_only_what_is_near_to_what_changed() -> None:
    ledger = Asked()
    revisions(ledger, verdict("broker-heap-oom"))
    revisions(ledger, verdict("broker-disk-full", 60 * 24 * 9))
    revisions(ledger, verdict("broker-disk-full", 60 * 24 * 9))
    revisions(ledger, verdict("broker-heap-oom", 1), Roster("prod", {"broker": ("1", "2")}))
    assert ledger.asked == [None, {"broker-disk-full"}, set(), None]


def test_one_entity_after_the_other_is_no_chain_however_long_it_gets() -> None:
    ledger = Asked()
    for n in range(30):
        revisions(ledger, verdict("broker-disk-full", 5 * n, broker=str(n % 15)))
    kept = [interval_of(alert) for alerts in ledger.alerts("prod").values() for alert in alerts]
    around = AffectedAlerts(kept, link_table(plan())).around(kept[-1:])
    assert {each.key for each in around} == {kept[-1].key}


def test_what_may_be_linked_is_near_on_both_sides_by_time_and_by_the_names_that_both_have() -> None:
    def near(one: AlertInterval, other: AlertInterval) -> bool:
        around = {each: AffectedAlerts([one, other], link_table(plan())).around([each]) for each in (one, other)}
        assert (other in around[one]) == (one in around[other])
        return other in around[one]

    def at(rule: str, minute: float, until: datetime | None = EVER, **names: str) -> AlertInterval:
        return AlertInterval(("prod", rule, tuple(names.items())), NOON + timedelta(minutes=minute), until)

    known = [tie for each in link_table(plan()).outward.values() for tie in each]
    pairs = Counter(frozenset((tie.first, tie.second)) for tie in known)
    tie = next(t for t in known if ("broker", "broker") in t.by and t.after and pairs[frozenset((t.first, t.second))] == 1)
    cause, symptom, late = tie.first, tie.second, NOON + timedelta(minutes=1)
    after = 1 + tie.after / timedelta(minutes=1)
    assert near(at(cause, 0, late, broker="1"), at(symptom, after, broker="1"))
    assert not near(at(cause, 0, late, broker="1"), at(symptom, after + 0.1, broker="1"))
    assert near(at(cause, 0, EVER, broker="1"), at(symptom, after + 0.1, broker="1"))
    assert near(at(cause, 0, late, broker="1"), at(symptom, after + 0.1, None, broker="1")), "it may have been then"
    assert not near(at(cause, 0, EVER, broker="1"), at(symptom, 0, broker="2"))
    assert near(at(cause, 0, EVER, broker="1"), at(symptom, 0, group="g")), "what it captured may name the broker"
    assert not near(at(cause, 0, EVER, broker="1"), at(symptom, 0, broker="?"))
    assert near(at(symptom, 0, broker="1"), at(symptom, 0, broker="?")), "the same thing told with fewer names"
    assert not near(at(symptom, 0, NOON, broker="1"), at(symptom, 1, broker="?"))


def linked_rules() -> list[str]:
    """Return the rule with the most ties, and those it is tied with most."""
    known = link_table(plan())
    pairs = Counter((tie.first, tie.second) for each in known.outward.values() for tie in each)
    centre = Counter(rule for pair in pairs for rule in set(pair)).most_common(1)[0][0]
    beside = Counter(rule for pair, count in pairs.items() if centre in pair for rule in set(pair) for _ in range(count))
    staged = next(rule for rule in plan().rules().values() if rule.continues)
    return [*(rule for rule, _ in beside.most_common(8)), staged.id, staged.continues[0].rule]


RULES = linked_rules()
NAMES = ("node", "group", "connector", "task", "topic")
MINUTES = (0, 1, 3, 11, 50, 100, 400, 1500, 5000)
ALERTS = st.builds(
    lambda rule, broker, minute, lasts, severity, dated, node: made(
        rule, broker, NOON + timedelta(minutes=minute), lasts, severity, dated, node
    ),
    rule=st.sampled_from(RULES),
    broker=st.sampled_from("12?"),
    minute=st.builds(lambda one, other: one + other, st.sampled_from(MINUTES), st.sampled_from(MINUTES)),
    lasts=st.sampled_from((None, 0, 0, 2, 30, 300)),
    severity=st.sampled_from(("high", "high", "info")),
    dated=st.sampled_from((True, True, True, True, False)),
    node=st.sampled_from((None, "1", "2")),
)


def made(rule: str, broker: str, at: datetime, lasts: int | None, severity: str, dated: bool, node: str | None) -> Alert:
    key: AlertKey = ("prod", rule, (("broker", broker), ("cluster", "prod")))
    over = None if lasts is None else at + timedelta(minutes=lasts)
    captures = {name: Capture((node,)) for name in NAMES} if node else {}
    return Alert(
        key,
        "firing" if over is None else "resolved",
        severity,
        at,
        over or at,
        over,
        1,
        dated,
        {"cluster": "prod", "broker": broker},
        captures,
        sources=("a.log",),
    )


@given(st.lists(ALERTS, max_size=12))
def test_whatever_is_linked_is_near(alerts: list[Alert]) -> None:
    links = link_alerts(alerts, plan())
    causes = [(symptom, cause) for symptom, others in links.others.items() for cause in (links.parent[symptom], *others)]
    seen = [interval_of(alert) for alert in alerts]
    affected = AffectedAlerts(seen, link_table(plan()))
    near = {one: affected.around([one]) for one in seen}
    for one, other in (*causes, *links.same, *links.stage):
        assert seen[other] in near[seen[one]]
        assert seen[one] in near[seen[other]]


def test_the_property_sees_links() -> None:
    kinds = [
        link_alerts([one, other], plan())
        for one, other in combinations([made(r, "1", NOON, 5, "high", True, "1") for r in RULES], 2)
    ]
    assert any(links.parent for links in kinds)
    assert any(links.stage for links in kinds)


class Forgetful(MemoryLedger):
    """A ledger over which everything is decided each time."""

    def judged_by(self, scope: str) -> str | None:
        return None


@given(st.lists(st.tuples(ALERTS, st.sampled_from(("add", "add", "add", "drop")), st.booleans()), max_size=25))
def test_deciding_a_part_gives_what_deciding_everything_gives(steps: list[tuple[Alert, str, bool]]) -> None:
    part, whole = MemoryLedger(), Forgetful()
    for told, action, all_of_it in steps:
        known = {alert.starts_at: alert for alert in whole.alerts("prod").get(told.key, ())}
        if action == "add":
            known[told.starts_at] = told
        elif known:
            del known[max(known)]
        now = tuple(alert for start, alert in sorted(known.items()) if all_of_it or start >= told.starts_at)
        said = Verdict(told.key, now, None if all_of_it else told.starts_at)
        assert (now_said := revisions(part, said)) == revisions(whole, said)
        assert len({incident.id for incident in now_said}) == len(now_said)
        assert revisions(part, said) == revisions(whole, said) == [], "nothing new makes no revision"
    assert part.incidents("prod") == whole.incidents("prod")
