"""The exception that ended a Connect task is the trouble, not that it was killed: in a log, and in what REST says of it."""

from __future__ import annotations

import json

import pytest

from tests.rulepack.playing import Story, one, play

pytestmark = pytest.mark.slow

OUTER = "org.apache.kafka.connect.errors.ConnectException: x"
KILLED = (
    "[2023-02-03 02:05:07,328] ERROR [shop|task-0] {task}{{id=shop-0}} Task threw an uncaught and unrecoverable exception. "
    "Task is being killed and will not recover until manually restarted (org.apache.kafka.connect.runtime.WorkerTask:196)\n"
)
REASONS = {
    "client-authorization-denied": "GroupAuthorizationException: Not authorized to access group: connect-shop",
    "client-kerberos-login-failed": "SaslAuthenticationException: An error: (SaslException: GSS initiate failed) occurred",
    "client-sasl-auth-failed": "SaslAuthenticationException: Authentication failed: Invalid username or password",
    "client-ssl-handshake-failed": "SslAuthenticationException: SSL handshake failed",
    "client-unsupported-version": "UnsupportedVersionException: The broker does not support the requested version",
    "consumer-fenced-static": (
        "FencedInstanceIdException: The broker rejected this static consumer since another consumer with the same "
        "group.instance.id has registered with a different member.id."
    ),
    "producer-batch-expired": "TimeoutException: Expiring 3 record(s) for shop-0:120000 ms has passed since batch creation",
    "producer-fenced": (
        "ProducerFencedException: There is a newer producer with the same transactionalId which fences the current one."
    ),
    "producer-metadata-timeout": "TimeoutException: Topic shop not present in metadata after 60000 ms.",
    "producer-not-enough-replicas": (
        "NotEnoughReplicasException: Messages are rejected since there are fewer in-sync replicas than required."
    ),
    "producer-out-of-order-sequence": "OutOfOrderSequenceException: The broker received an out of order sequence number.",
}
OF_CONNECT = {
    "connect-dlq-write-failed": "ConnectException: Could not initialize dead letter queue with topic=shop-dlq",
    "debezium-invalid-config": "DebeziumException: io.debezium: The 'topic.prefix' value is invalid: A value is required",
    "debezium-pg-wal-level": "DebeziumException: Postgres server wal_level property must be 'logical' but is: 'replica'",
    "debezium-sqlserver-cdc": "DebeziumException: CDC is not enabled for database shop",
}
TRACES = {rule: f"org.apache.kafka.common.errors.{said}" for rule, said in REASONS.items()} | OF_CONNECT


def _trace(rule: str) -> str:
    return f"{OUTER}\n\tat org.apache.kafka.connect.runtime.WorkerTask.run(WorkerTask.java:1)\nCaused by: {TRACES[rule]}\n"


@pytest.mark.parametrize("rule", TRACES)
def test_a_killed_task_is_told_by_its_reason(rule: str) -> None:
    assert one(Story({"connect.log": KILLED.format(task="WorkerSourceTask") + _trace(rule)})).rule == rule


@pytest.mark.parametrize("rule", TRACES)
def test_a_failed_task_of_a_status_is_told_by_its_reason(rule: str) -> None:
    task = {"id": 0, "state": "FAILED", "worker_id": "connect-1:8083", "trace": _trace(rule)}
    status = {"name": "shop", "connector": {"state": "RUNNING", "worker_id": "connect-1:8083"}, "tasks": [task]}
    assert one(Story({"status.json": json.dumps(status)})).rule == rule


def test_a_failed_task_of_which_nothing_else_is_known_is_told_too() -> None:
    task = {
        "id": 3,
        "state": "FAILED",
        "worker_id": "connect-1:8083",
        "trace": "java.lang.NullPointerException\n\tat a.B.c(B.java:1)\n",
    }
    status = {"name": "shop", "connector": {"state": "RUNNING", "worker_id": "connect-1:8083"}, "tasks": [task]}
    told = one(Story({"status.json": json.dumps(status)}))
    assert (told.rule, told.labels["connector"], told.labels["task"]) == ("connect-task-killed", "shop", "3")


def test_a_task_of_another_connector_is_no_part_of_the_trouble_of_the_first() -> None:
    traces = {"shop": _trace("producer-fenced"), "other": "java.lang.NullPointerException\n\tat a.B.c(B.java:1)\n"}
    connector = {"state": "RUNNING", "worker_id": "connect-1:8083"}
    statuses = [
        {"name": name, "connector": connector, "tasks": [{"id": 0, "state": "FAILED", "trace": trace}]}
        for name, trace in traces.items()
    ]
    told = play(Story({"status.json": "\n".join(map(json.dumps, statuses))}))
    assert {incident.labels["connector"]: incident.rule for incident in told} == {
        "shop": "producer-fenced",
        "other": "connect-task-killed",
    }
