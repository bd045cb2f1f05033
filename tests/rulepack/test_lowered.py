"""What is harmless lowers a trouble that it may account for, and hides none."""

from __future__ import annotations

import pytest

from tests.rulepack.playing import Story, play

pytestmark = pytest.mark.slow

RENEWED = (
    "2023-05-11 02:00:11 INFO  Ca:624 - Reconciliation #812(timer) Kafka(kafka/prod): Cluster CA certificate in secret "
    "prod-cluster-ca-cert needs to be renewed\n"
)
REFUSED = (
    "2023-05-11 02:{minute}:20 INFO  KafkaRoller:371 - Reconciliation #812(timer) Kafka(kafka/prod): Could not verify pod "
    "prod-kafka-2/2 is up-to-date, giving up after 10 attempts. Total delay between attempts 127750ms\n"
)


@pytest.mark.parametrize(("times", "severity"), [(1, "low"), (3, "medium")])
def test_a_renewal_of_certificates_does_not_hide_a_roll_that_is_stuck(times: int, severity: str) -> None:
    refusals = "".join(REFUSED.format(minute=f"{minute:02}") for minute in range(5, 5 + 5 * times, 5))
    (incident,) = play(Story({"operator.log": RENEWED + refusals}))
    assert (incident.rule, incident.severity) == ("strimzi-pod-not-rollable", severity)
