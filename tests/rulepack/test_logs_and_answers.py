"""Logs and a cluster that is asked, of the same outage in one run: what one calls over and the other does not stays open and
says so, and is over when both agree."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from engine.asking import stamped
from engine.incident import MemoryLedger
from engine.model.incidents import Incident
from engine.pipeline import replay
from tests.rulepack.playing import Story, lines_of, plan

pytestmark = pytest.mark.slow

BEGIN = datetime(2026, 11, 26, 14, 0, tzinfo=UTC)
ENDPOINTS = "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE"
Said = tuple[float, str, str]  # minutes after BEGIN, the file, the text


def log(minute: float, level: str, text: str, name: str = "server.log") -> Said:
    at = BEGIN + timedelta(minutes=minute)
    return minute, name, f"[{at:%Y-%m-%d %H:%M:%S},000] {level} {text}\n"


def asked(minute: float, text: str) -> Said:
    return minute, "asked.log", stamped([text], BEGIN + timedelta(minutes=minute)).decode()


def task(state: str, trace: str = "") -> str:
    of_task = {"id": 0, "state": state, "worker_id": "connect-1:8083", **({"trace": trace} if trace else {})}
    connector = {"state": "RUNNING", "worker_id": "connect-1:8083"}
    return json.dumps({"name": "shop", "connector": connector, "tasks": [of_task], "type": "source"}, separators=(",", ":"))


def broker(state: str) -> str:
    return f"{ENDPOINTS}\n2          kafka-2                        9092       null       {state:<10} broker"


def partition(isr: str) -> str:
    return f"\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: {isr}"


KILLED = (
    "[shop|task-0] WorkerSourceTask{id=shop-0} Task threw an uncaught and unrecoverable exception. Task is being killed and"
    " will not recover until manually restarted (org.apache.kafka.connect.runtime.WorkerTask:196)\n"
    "org.apache.kafka.connect.errors.ConnectException: lost\n\tat com.shop.Task.poll(Task.java:1)"
)
TRACE = "org.apache.kafka.connect.errors.ConnectException: lost\n\tat com.shop.Task.poll(Task.java:1)\n"
STARTED = (
    "[shop|task-0] WorkerSourceTask{id=shop-0} Source task finished initialization and start"
    " (org.apache.kafka.connect.runtime.AbstractWorkerSourceTask:278)"
)
REFUSED = (
    "[ReplicaManager broker=1] Error processing append operation on partition orders-0 (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR : 1 is insufficient to satisfy the"
    " min.isr requirement of 2 for partition orders-0, live replica(s) broker.id are : Set(1)"
)
EXPANDED = "[Partition orders-0 broker=1] Expanding ISR from 1 to 1,2 (kafka.cluster.Partition)"
FENCED = (
    "[QuorumController id=9] Fencing broker 2 at epoch 7 because its session has timed out."
    " (org.apache.kafka.controller.ReplicationControlManager)"
)
UNFENCED = (
    "[QuorumController id=9] The request from broker 2 to unfence has been granted because it has caught up with the offset of"
    " its register broker record 800. (org.apache.kafka.controller.BrokerHeartbeatManager)"
)
# name -> rule; what logs say of its begin and its end; what the cluster says of it, bad and good
CASES = {
    "task": ("connect-task-killed", ("ERROR", KILLED), ("INFO", STARTED), task("FAILED", TRACE), task("RUNNING")),
    "replicas": ("broker-not-enough-replicas", ("ERROR", REFUSED), ("INFO", EXPANDED), partition("1"), partition("1,2,3")),
    "fenced": ("broker-away", ("INFO", FENCED), ("INFO", UNFENCED), broker("fenced"), broker("unfenced")),
}


def incidents(*said: Said, until: float) -> list[Incident]:
    """Return all incidents as they are `until` minutes after BEGIN, when everything until then was read."""
    logs: dict[str, str] = {}
    nothing = (log(until, "INFO", "Awaiting socket connections. (kafka.network.Acceptor)"), asked(until, "Cluster ID: x"))
    for _, name, text in sorted([*said, *nothing]):
        logs[name] = logs.get(name, "") + text
    labels = {"cluster": "prod", "may_speak_for": "broker, controller, connect"}
    final = {incident.id: incident for incident in replay(lines_of(Story(logs, labels)), plan(), MemoryLedger())}
    return [incident for incident in final.values() if incident.status != "retracted"]


def the(*said: Said, until: float) -> Incident:
    """Return the only incident of an outage."""
    (incident,) = [each for each in incidents(*said, until=until) if each.severity != "info"]
    return incident


@pytest.mark.parametrize("name", CASES)
def test_logs_say_that_it_is_over_and_the_cluster_does_not(name: str) -> None:
    rule, begins, ends, bad, good = CASES[name]
    said = [log(0, *begins), asked(0.5, bad), log(5, *ends)]
    open_one = the(*said, until=8)
    assert (open_one.rule, open_one.status) == (rule, "open")
    assert "but the cluster, asked at 14:00 UTC, says that it is not over" in open_one.why
    over = the(*said, asked(10, good), until=13)
    assert (over.rule, over.status) == (rule, "resolved")
    assert over.why.endswith("verified at 14:10 UTC by asking the cluster")


@pytest.mark.parametrize("name", CASES)
def test_the_cluster_says_that_it_is_over_and_later_lines_do_not(name: str) -> None:
    rule, begins, ends, bad, good = CASES[name]
    said = [log(0, *begins), asked(0.5, bad), asked(5, good), log(5.5, *begins)]
    open_one = the(*said, until=6)
    assert (open_one.rule, open_one.status) == (rule, "open")
    assert "the cluster, asked at 14:05 UTC, said that it is over, but later lines say that it is not" in open_one.why
    over = the(*said, log(7, *ends), asked(8, good), until=13)
    assert (over.rule, over.status) == (rule, "resolved")


@pytest.mark.parametrize("name", CASES)
def test_both_agree(name: str) -> None:
    rule, begins, ends, bad, good = CASES[name]
    over = the(log(0, *begins), asked(0.5, bad), log(5, *ends), asked(5.5, good), until=8)
    assert (over.rule, over.status) == (rule, "resolved")
    assert over.why.endswith("verified at 14:05 UTC by asking the cluster")
