"""Each rule fires on its own samples only: what else speaks up on them was looked at and is listed here with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from engine.dsl import builtin_rules, load_pack
from engine.dsl.pack import Pack
from engine.model.rules import Rule
from tests.rulepack.reading import rules_of

pytestmark = pytest.mark.slow

REVIEWED: Mapping[tuple[str, str], str] = {
    ("share-dlq-write-failed", "client-authorization-denied"): "the brokers may not write the dead letter topic",
    ("share-dlq-write-failed", "producer-record-too-large-broker"): "the record is too large for the dead letter topic",
    ("broker-out-of-cluster", "broker-away"): "the cluster says that a broker is absent, which both read",
    ("connect-task-failed", "connect-task-killed"): "a status says FAILED, which both read",
    ("client-sasl-auth-failed", "client-ssl-handshake-failed"): "the certificate of who gives out tokens is not trusted",
    ("kraft-metadata-stale", "broker-log-dir-not-writable"): "a snapshot of the metadata may not be written there",
    ("spring-container-fatal-stop", "consumer-offset-out-of-range"): "a container stops because its offset is not there",
    ("mm2-source-task-failed", "client-authorization-denied"): "a copying task fails because one side refuses it",
    ("spring-dlt-publish-failed", "client-authorization-denied"): "the dead letter topic may not be written",
    ("spring-dlt-publish-failed", "producer-metadata-timeout"): "there is no dead letter topic",
    ("tiered-copy-ended", "broker-remote-storage-failed"): "a copy that failed has ended",
    ("spring-dlt-publish-failed", "producer-record-too-large-client"): "the record is too large for the dead letter topic",
}


@cache
def pack() -> Pack:
    return load_pack([builtin_rules()])


def test_no_rule_speaks_up_on_the_samples_of_another_unless_it_was_reviewed() -> None:
    confused = confusion()
    print("\n".join(f"{owner:48} {other}" for owner, other in sorted(confused)))
    assert confused == REVIEWED.keys()


def confusion() -> set[tuple[str, str]]:
    """Return pairs of rules: the second, which would speak up by itself, matches a firing sample of the first.

    Pairs where one explains the other, or counts it, are one trouble in two words and left out.
    """
    plan = pack().plan
    rules = plan.rules()
    samples = {
        f"{owner}/{number}/{name}": (text, test.labels)
        for owner, tests in pack().tests.items()
        for number, test in enumerate(tests)
        for name, text in test.logs.items()
        if test.fires is not None
    }
    matched = rules_of(samples, plan)
    pairs = {
        (name.split("/")[0], other) for name, others in matched.items() for other in others if rules[other].severity != "info"
    }
    return {(owner, other) for owner, other in pairs if owner != other and not _related(rules[owner], rules[other])}


def _related(one: Rule, other: Rule) -> bool:
    counted = {(each.rule.id, id_) for each in pack().plan.correlations for id_ in each.rules}
    explained = {(rule.id, id_) for rule in (one, other) for entry in rule.explains for id_ in entry.rules}
    return not {(one.id, other.id), (other.id, one.id)}.isdisjoint(counted | explained)
