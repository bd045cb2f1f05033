"""The stories with other sizes, names, ids and ends: what is diagnosed hangs on none of the original's values."""

from __future__ import annotations

import pytest

from engine.model.incidents import Incident
from tests.rulepack.playing import STORIES, Story, fix_text, one, play, story

pytestmark = pytest.mark.slow

CDC, SINK, RETRIES, SILENT, STORM = (story(folder) for folder in STORIES)
LOG = "kafka-connect-2.log"
FIRST_STAGE = CDC.only(lambda name: name == LOG).before("[2023-02-03 17:")
BROKERS = SILENT.only(lambda name: name.startswith("broker-"))
COMPLAINTS = ("leaderId=1", "java.io.IOException", "\tat ", "Shrinking ISR", "ReplicaFetcherManager", "starts at Leader Epoch")
QUIET = BROKERS.lines(lambda _, line: not any(word in line for word in COMPLAINTS))
LAST = "broker-1/server.log.2022-10-05-17"


# -- 1. the silent CDC connector


@pytest.mark.parametrize(
    ("size", "room"), [("1048577", "2097152"), ("2097152", "2097152"), ("2097153", "4194304"), ("15728640", "16777216")]
)
def test_the_limits_follow_the_size_of_the_record(size: str, room: str) -> None:
    incident = one(FIRST_STAGE.changed("1125872", size))
    said = fix_text(incident)
    assert incident.captures["size"] == int(size)
    assert f"producer.max.request.size={room}" in said
    assert f"CONNECT_PRODUCER_MAX_REQUEST_SIZE={room}" in said
    assert f"max.message.bytes={room}" in said


@pytest.mark.parametrize("topic", ["orders", "shop-eu.orders-v2", "a.b-c_d.1-2"])
@pytest.mark.parametrize("connector", ["orders", "shop-db-source-7", "cdc_2.v1"])
def test_names_with_dashes_and_dots_are_cut_in_the_right_places(topic: str, connector: str) -> None:
    incident = one(FIRST_STAGE.changed("AAAA.BBBB.CCCCC", topic).changed("cdc-source", connector))
    assert (incident.captures["topic"], incident.labels["connector"], incident.labels["task"]) == (topic, connector, "0")
    assert f"--entity-name {topic} " in fix_text(incident)
    assert f"/connectors/{connector}/tasks/0/restart" in fix_text(incident)


@pytest.mark.parametrize("name", [LOG, "rest-status.json", "alert.json"])
def test_each_input_alone_leads_to_the_same_diagnosis(name: str) -> None:
    incident = one((FIRST_STAGE if name == LOG else CDC).only(lambda each: each == name))
    assert incident.rule == "connect-record-too-large-client"
    assert (incident.captures["size"], incident.captures["limit"]) == (1125872, 1048576)


def test_the_brokers_refusal_is_the_next_stage_of_the_same_incident() -> None:
    before, after = one(FIRST_STAGE), one(CDC)
    assert (before.id, before.rule) == (after.id, after.rule)
    assert (before.stage, after.stage) == ("", "connect-record-too-large-broker")


def test_the_brokers_refusal_alone_is_an_incident_of_its_own() -> None:
    later = CDC.only(lambda name: name == LOG).since("[2023-02-03 17:")
    assert one(later).rule == "connect-record-too-large-broker"


def test_a_hostile_topic_name_gets_into_no_command() -> None:
    said = fix_text(one(FIRST_STAGE.changed("AAAA.BBBB.CCCCC", "$(reboot)")))
    assert "$(reboot)" not in "".join(line for line in said.splitlines() if line.startswith("kafka-configs.sh"))
    assert "${topic:?}" in said


# -- 2. Connect error handling


def test_a_record_logged_again_after_a_restart_counts_once() -> None:
    once = SINK.lines(lambda _, line: "00:52:18" not in line)
    counted = [incident.count for incident in play(once) if incident.labels.get("stage") == "VALUE_CONVERTER"]
    assert counted == [5]


def test_no_address_of_a_person_is_told() -> None:
    assert all("@example.com" not in item.text for incident in play(SINK) for item in incident.evidence)


def test_only_a_failed_put_is_critical() -> None:
    tolerated = play(SINK.before("[2024-06-30 02:"))
    assert {incident.severity for incident in tolerated} == {"medium"}


# -- 3. the producer that retried


@pytest.mark.parametrize(("kept", "times"), [(4, 3), (2, 1)])
def test_refusals_are_counted_as_retries_of_one_send(kept: int, times: int) -> None:
    broker = RETRIES.only(lambda name: name == "broker-0.log")
    refused = [
        line for line in broker.logs["broker-0.log"].splitlines(keepends=True) if " ERROR " in line or "NotEnough" in line
    ]
    incident = one(broker.with_log("broker-0.log", "".join(refused[: 2 * kept])))
    assert (incident.count, incident.status) == (kept, "open")
    assert f"one send was retried {times} times" in incident.cause


def test_other_ids_topics_and_minimums() -> None:
    told = (
        RETRIES.changed("dawn-0", "web-clicks.eu-11")
        .changed("Set(0)", "Set(7)")
        .changed("requirement of 2", "requirement of 3")
    )
    [incident] = [each for each in play(told) if each.rule == "broker-not-enough-replicas"]
    assert incident.captures["partition"] == "web-clicks.eu-11"
    assert "in sync: broker 7" in incident.cause
    assert incident.captures["min_isr"] == 3


@pytest.mark.parametrize(
    "line",
    [
        "Number of insync replicas for partition dawn-0 is [1], below required minimum [2]",
        "The size of the current ISR List(0) is insufficient to satisfy the min.isr requirement of 2 for partition dawn-0",
        "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2 for partition dawn-0, "
        "live replica(s) broker.id are : Set(0)",
    ],
)
def test_the_refusal_is_known_in_the_words_of_every_version(line: str) -> None:
    original = "The size of the current ISR Set(0) is insufficient to satisfy the min.isr requirement of 2 for partition dawn-0"
    incident = one(RETRIES.only(lambda name: name == "broker-0.log").changed(original, line))
    assert (incident.rule, incident.count, incident.status) == ("broker-not-enough-replicas", 6, "resolved")


# -- 4. the broker that died without a word


def test_without_complaints_the_heartbeats_decide() -> None:
    incident = one(QUIET)
    assert (incident.rule, incident.severity, incident.labels["broker"]) == ("broker-silent", "critical", "1")
    assert "collected earlier" in incident.why


def test_with_the_last_line_alone_in_its_file() -> None:
    incident = one(QUIET.lines(lambda name, line: name != LAST or "17:05:39,869" in line))
    assert incident.first_seen is not None
    assert incident.first_seen.isoformat() == "2022-10-05T08:05:39.869000+00:00"


@pytest.mark.parametrize("number", ["7", "1001"])
def test_another_broker(number: str) -> None:
    told = BROKERS.changed("brokerId=1]", f"brokerId={number}]").changed("leaderId=1,", f"leaderId={number},")
    incident = one(told.changed("to node 1", f"to node {number}"))
    assert (incident.rule, incident.labels["broker"]) == ("broker-silent", number)


def test_five_brokers() -> None:
    told = BROKERS
    for new in ("4", "5"):
        twin = BROKERS.only(lambda name: name.startswith("broker-3/")).changed("broker-3/", f"broker-{new}/")
        twin = twin.changed("brokerId=3]", f"brokerId={new}]").changed("replicaId=3,", f"replicaId={new},")
        twin = twin.changed("broker=3]", f"broker={new}]").changed("on broker 3]", f"on broker {new}]")
        told = Story({**told.logs, **twin.logs}, told.labels)
    incident = one(told)
    assert (incident.rule, incident.labels["broker"]) == ("broker-silent", "1")
    assert "1,2,3,4,5" in incident.cause


STOP = """\
[2022-10-05 17:05:41,120] INFO [KafkaServer id=1] shutting down (kafka.server.KafkaServer)
[2022-10-05 17:05:43,400] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)
"""
START = "[2022-10-05 19:08:01,400] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"


def test_a_planned_stop_raises_nothing_for_hours() -> None:
    assert play(BROKERS.with_log(LAST, BROKERS.logs[LAST] + STOP)) == []


def test_the_next_start_ends_it() -> None:
    incident = one(BROKERS.with_log("broker-1/server.log", START))
    assert (incident.rule, incident.status) == ("broker-silent", "resolved")
    assert incident.resolved_at is not None
    assert incident.resolved_at.isoformat() == "2022-10-05T10:08:01.400000+00:00"


def test_a_log_that_ends_with_its_rotated_file_is_no_verdict() -> None:
    assert play(QUIET.only(lambda name: name != LAST)) == []


def test_one_other_broker_going_on_is_no_verdict() -> None:
    assert play(QUIET.only(lambda name: not name.startswith("broker-2/"))) == []


def test_a_broker_that_complains_and_then_ends_is_not_taken_for_the_dead_one() -> None:
    early = BROKERS.lines(lambda name, line: not name.startswith("broker-3/") or "2022-10-05 19" not in line)
    assert one(early).labels["broker"] == "1"


def test_a_described_topic_with_one_replica_is_told_without_any_broker() -> None:
    incident = one(SILENT.only(lambda name: name == "describe.txt"))
    assert (incident.rule, incident.labels["topic"]) == ("topic-single-replica", "account_event")


def test_the_gap_in_a_dump_says_from_when_to_when() -> None:
    incident = one(SILENT.only(lambda name: name == "dump.txt"))
    assert incident.rule == "topic-data-gap"
    assert incident.first_seen is not None and incident.resolved_at is not None
    assert incident.first_seen.isoformat() == "2022-10-05T08:02:56.908000+00:00"
    assert incident.resolved_at.isoformat() == "2022-10-05T10:18:00.597000+00:00"


# -- 5. the rebalance storm

EXPORT = "kibana-export.txt"
TIMEOUT = (
    "Apr 14, 2022 @ 03:43:57.000 2022-04-14 03:43:57.120 WARN 1 --- [d | my-consumer] o.a.k.c.c.internals.ConsumerCoordinator "
    ": [Consumer clientId=consumer-1, groupId=eastglow-consume-group] consumer poll timeout has expired. This means the time "
    "between subsequent calls to poll() was longer than the configured max.poll.interval.ms\n\n"
)


def test_another_group() -> None:
    assert one(STORM.changed("eastglow-consume-group", "billing.v2-eu")).labels["group"] == "billing.v2-eu"


def test_the_storm_alone() -> None:
    incident = one(STORM.lines(lambda _, line: "CommitFailed" not in line))
    assert (incident.rule, incident.count) == ("group-rebalance-loop", 5)


def test_the_poll_time_out_is_the_root_where_it_is_logged() -> None:
    incident = one(STORM.with_log(EXPORT, TIMEOUT + STORM.logs[EXPORT]))
    assert incident.rule == "consumer-max-poll-exceeded"
    assert "consumer-commit-failed" in {symptom.rule for symptom in incident.symptoms}
    assert "max.poll.interval.ms=600000" in fix_text(incident)


def test_one_rebalance_of_the_same_group_raises_nothing() -> None:
    assert play(STORM.lines(lambda _, line: "@ 03:14:1" in line)) == []


# -- all of them


@pytest.mark.parametrize("told", [CDC, SINK, RETRIES, SILENT, STORM], ids=[folder.name for folder in STORIES])
def test_reading_everything_twice_changes_nothing(told: Story) -> None:
    def shape(incident: Incident) -> tuple[object, ...]:
        return incident.id, incident.rule, incident.severity, incident.status, incident.count, incident.first_seen

    assert [shape(incident) for incident in play(told, times=2)] == [shape(incident) for incident in play(told)]
