"""Every check finds its risk, stays silent about its near miss, and prints commands with the values of the case."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.risks.cluster import AuditedCluster
from engine.risks.judging import CHECK_IDS, AcceptedRisk, ClusterAudit, judged
from engine.risks.risk import Risk
from tests.unit.risks.clusters import AT, PROTOCOLS, broker, cluster, connector, group, topic

JSON, AVRO = "org.apache.kafka.connect.json.JsonConverter", "io.confluent.connect.avro.AvroConverter"
AUTO = {"auto_create_topics_enable": "true"}
UNCLEAN = {"unclean_leader_election_enable": "true"}
LARGE = {"max_message_bytes": "2097152"}
WRITER = connector("cdc", "source", "orders", value_converter=JSON, value_converter_schemas_enable="false")
OLD = AT - timedelta(days=5)

# a cluster -> the checks that find something in it
CASES: dict[str, tuple[AuditedCluster, set[str]]] = {
    "nothing": (cluster(), set()),
    "one replica": (cluster(topic("lone", (2,))), {"topic-one-replica"}),
    "one partition of one replica": (cluster(topic("lone", (1, 2, 3), (2,))), {"topic-one-replica"}),
    "offsets on one broker": (cluster(topic("__consumer_offsets", (1,))), {"internal-topic-one-replica"}),
    "state of connect on one broker": (
        cluster(topic("my-connect-offsets", (1,), cleanup_policy="compact")),
        {"internal-topic-one-replica"},
    ),
    "a topic with a similar name": (cluster(topic("my-connect-offsets", (1,))), {"topic-one-replica"}),
    "one in sync is enough": (cluster(topic("orders", min_insync_replicas="1")), {"min-insync-worthless"}),
    "all must be in sync": (cluster(topic("orders", min_insync_replicas="3")), {"min-insync-impossible"}),
    "more than there are must be in sync": (cluster(topic("orders", min_insync_replicas="4")), {"min-insync-impossible"}),
    "brokers that differ": (cluster(broker(3, min_insync_replicas="1")), {"settings-apart"}),
    "two of two must be in sync": (cluster(topic("pair", (1, 2))), {"min-insync-impossible"}),
    "unclean topic": (cluster(topic("orders", **UNCLEAN)), {"unclean-election"}),
    "unclean topic with nothing to elect": (cluster(topic("lone", (1,), **UNCLEAN)), {"topic-one-replica"}),
    "unclean brokers": (cluster(*(broker(id_, **UNCLEAN) for id_ in (1, 2, 3))), {"unclean-election-by-default"}),
    "created by use": (cluster(*(broker(id_, **AUTO) for id_ in (1, 2, 3))), {"auto-created-topics"}),
    "one rack": (
        cluster(broker(1, "a"), broker(2, "a"), broker(3, "b"), topic("pair", (1, 2))),
        {"one-rack", "min-insync-impossible"},
    ),
    "only one rack there": (cluster(*(broker(id_, "a") for id_ in (1, 2, 3))), set()),
    "even quorum": (cluster(voters=(1, 2, 3, 4)), {"even-voters"}),
    "no quorum seen": (cluster(voters=()), set()),
    "brokers of two versions": (
        cluster(replace(broker(2), protocols={"Fetch(1)": "4 to 17"})),
        {"versions-apart"},
    ),
    "workers of two versions": (cluster(workers={"a:8083": "4.3.1", "b:8083": "4.2.0"}), {"versions-apart"}),
    "nobody reads": (cluster(group("billing", "Empty")), {"group-without-members"}),
    "nobody reads, and nobody writes": (cluster(group("billing", "Empty", earlier=5)), set()),
    "nobody reads, and it grows": (cluster(group("billing", "Empty", earlier=3)), {"group-without-members"}),
    "consumers without a membership commit": (cluster(group("flink", "Empty", earlier=3, has_moved=True)), set()),
    "members that are behind": (cluster(group("billing", "Stable")), set()),
    "nothing to read": (cluster(group("billing", "Empty", lag=0)), set()),
    "behind what is kept": (cluster(group("billing", "Stable", unread_since=OLD)), {"retention-below-lag"}),
    "records are lost": (cluster(group("billing", "Stable", is_lost=True)), {"retention-below-lag"}),
    "old records of a topic that is compacted": (
        cluster(topic("orders", cleanup_policy="compact"), group("billing", "Stable", unread_since=OLD)),
        set(),
    ),
    "old records of a topic that keeps them": (
        cluster(topic("orders", retention_ms="-1"), group("billing", "Stable", unread_since=OLD)),
        set(),
    ),
    "records are lost by size": (
        cluster(topic("orders", retention_ms="-1"), group("billing", "Stable", is_lost=True)),
        {"retention-below-lag"},
    ),
    "silent tolerance": (cluster(connector("sink", "sink", errors_tolerance="all")), {"errors-tolerated-silently"}),
    "logged tolerance": (cluster(connector("sink", "sink", errors_tolerance="all", errors_log_enable="true")), set()),
    "dead letters": (
        cluster(connector("sink", "sink", errors_tolerance="all", errors_deadletterqueue_topic_name="dead")),
        set(),
    ),
    "dead letters of a source, which has none": (
        cluster(connector("cdc", "source", errors_tolerance="all", errors_deadletterqueue_topic_name="dead")),
        {"errors-tolerated-silently"},
    ),
    "sends more than the topic takes": (
        cluster(connector("cdc", "source", "orders", producer_override_max_request_size="2097152")),
        {"sizes-contradict"},
    ),
    "sends the default to a topic for less": (
        cluster(topic("orders", max_message_bytes="100000"), connector("cdc", "source", "orders")),
        {"sizes-contradict"},
    ),
    "is set to send less than the topic was set to take": (
        cluster(
            topic("orders", **LARGE),
            *(broker(id_, replica_fetch_max_bytes="2097152") for id_ in (1, 2, 3)),
            connector("cdc", "source", "orders", producer_override_max_request_size="1500000"),
        ),
        {"sizes-contradict"},
    ),
    "replicas fetch less": (cluster(topic("orders", **LARGE)), {"fetch-below-record"}),
    "a sink fetches less": (
        cluster(connector("sink", "sink", "orders", consumer_override_max_partition_fetch_bytes="1000")),
        {"fetch-below-record"},
    ),
    "reads another format": (
        cluster(WRITER, connector("sink", "sink", topics="orders", value_converter=AVRO)),
        {"converters-contradict"},
    ),
    "wants schemas": (
        cluster(WRITER, connector("sink", "sink", topics="orders", value_converter=JSON)),
        {"converters-contradict"},
    ),
    "reads as the source writes": (
        cluster(WRITER, connector("sink", "sink", "orders", value_converter=JSON, value_converter_schemas_enable="false")),
        set(),
    ),
    "the converter of the worker": (cluster(WRITER, connector("sink", "sink", "orders")), set()),
}


def found(result: ClusterAudit) -> set[str]:
    return {risk.check for risk in result.risks}


def only(seen: AuditedCluster) -> Risk:
    (risk,) = judged(seen).risks
    return risk


@pytest.mark.parametrize("case", CASES)
def test_each_risk_is_found_and_its_near_miss_is_not(case: str) -> None:
    seen, checks = CASES[case]
    result = judged(seen)
    assert found(result) == checks
    assert result.unseen == ()


def test_every_check_is_provoked() -> None:
    assert set().union(*(checks for _, checks in CASES.values())) == set(CHECK_IDS)


def test_commands_have_the_values_of_the_case() -> None:
    lone = only(cluster(topic("lone", (2,), (3,))))
    step, verify = lone.fix
    (file,) = step.file.values()
    assert json.loads(file)["partitions"] == [
        {"topic": "lone", "partition": 0, "replicas": [2, 1, 3]},
        {"topic": "lone", "partition": 1, "replicas": [3, 2, 1]},
    ]
    assert step.run == (
        "kafka-reassign-partitions.sh --bootstrap-server kafka-1:9092 --reassignment-json-file reassign-lone.json --execute"
    )
    assert verify.run == step.run.replace("--execute", "--verify")
    assert not verify.changes_state
    first = only(cluster(topic("orders", min_insync_replicas="1"))).fix[0].run
    assert first.endswith("--alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2")


@pytest.mark.parametrize("name", ["lone", "__consumer_offsets", "pair"])
def test_two_copies_are_asked_for_only_after_the_copies_are_complete(name: str) -> None:
    replicas = (1, 2) if name == "pair" else (2,)
    risk = only(cluster(topic(name, replicas, min_insync_replicas="1")))
    assert [step.run.rpartition(" ")[2] for step in risk.fix] == ["--execute", "--verify", "min.insync.replicas=2"]
    assert "only then go on" in risk.fix[1].do
    assert "refused" in risk.changes and "before the copies are complete" in risk.changes
    assert "in the background" in risk.changes


def test_fewer_in_sync_are_enough_before_copies_are_made() -> None:
    risk = only(cluster(topic("pair", (1, 2), min_insync_replicas="3")))
    assert [step.run.rpartition(" ")[2] for step in risk.fix] == ["min.insync.replicas=2", "--execute", "--verify"]


def test_new_replicas_are_in_other_racks() -> None:
    racks = (broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "b"), broker(5, "c"))
    step, _ = only(cluster(*racks, topic("lone", (1,)))).fix
    (file,) = step.file.values()
    (partition,) = json.loads(file)["partitions"]
    assert partition["replicas"][0] == 1
    assert {racks[id_ - 1].rack for id_ in partition["replicas"]} == {"a", "b", "c"}


def test_a_fenced_broker_gets_no_replica() -> None:
    step, _ = only(cluster(replace(broker(2), is_fenced=True), broker(4), topic("lone", (1,)))).fix
    (file,) = step.file.values()
    assert json.loads(file)["partitions"][0]["replicas"] == [1, 3, 4]


def test_a_third_broker_that_is_fenced_is_none() -> None:
    risk = only(cluster(replace(broker(3), is_fenced=True), topic("pair", (1, 2), min_insync_replicas="1")))
    assert (risk.check, risk.fix) == ("min-insync-worthless", ())


def test_a_rack_whose_brokers_are_fenced_takes_no_replica() -> None:
    racks = (broker(1, "a"), broker(2, "a"), broker(3, "a"), replace(broker(4, "b"), is_fenced=True))
    assert judged(cluster(*racks)).risks == ()


def test_what_a_fenced_broker_takes_is_not_known_and_does_not_count() -> None:
    fenced = replace(broker(3), is_fenced=True, protocols={})
    seen = cluster(fenced, topic("lone", (1,)))
    assert found(judged(seen)) == {"topic-one-replica"}


def test_replicas_of_one_rack_are_moved_where_they_are_enough() -> None:
    racks = (broker(1, "a"), broker(2, "a"), broker(3, "a"), broker(4, "b"))
    step, _ = only(cluster(*racks)).fix
    (file,) = step.file.values()
    assert json.loads(file)["partitions"] == [{"topic": "orders", "partition": 0, "replicas": [1, 2, 4]}]


def test_two_brokers_get_no_command_that_makes_it_worse() -> None:
    two = {1: broker(1), 2: broker(2)}
    for seen in (topic("orders", (1, 2), min_insync_replicas="1"), topic("orders", (1, 2))):
        risk = only(cluster(seen, brokers=two))
        assert risk.fix == ()
        assert "third broker" in risk.changes


def test_brokers_before_3_7_refuse_what_later_ones_bound() -> None:
    seen = cluster(topic("lone", (1,)))
    assert found(judged(seen)) == {"topic-one-replica"}
    older = {id_: replace(broker(id_), protocols={"Fetch(1)": "0 to 15"}) for id_ in (1, 2, 3)}
    assert found(judged(replace(seen, brokers=older))) == {"topic-one-replica", "min-insync-impossible"}
    assert judged(replace(seen, brokers=older)).risks[0].severity == "critical"
    assert PROTOCOLS["Fetch(1)"].endswith("18")


@pytest.mark.parametrize(
    ("setting", "values"),
    [("unclean_leader_election_enable", ("true", "true", "false")), ("min_insync_replicas", ("1", "1", "2"))],
)
def test_brokers_that_differ_are_shown_and_no_value_is_taken_for_the_right_one(setting: str, values: tuple[str, ...]) -> None:
    seen = cluster(*(broker(id_, **{setting: value}) for id_, value in enumerate(values, 1)))
    (risk,) = (risk for risk in judged(seen).risks if risk.check == "settings-apart")
    assert all(f"{value} at broker {id_}" in risk.what for id_, value in enumerate(values, 1))
    (step,) = risk.fix
    assert step.run == (
        "kafka-configs.sh --bootstrap-server kafka-1:9092 --describe --entity-type brokers --all"
        f" | grep -F -e 'configs for broker' -e ' {setting.replace('_', '.')}='"
    )
    assert not step.changes_state


def test_names_of_groups_and_connectors_are_quoted() -> None:
    hostile = "x'; rm -rf ~; '"
    runs = [step.run for step in only(cluster(group(hostile, "Empty"))).fix]
    assert all("'x'\"'\"'; rm -rf ~; '\"'\"''" in run for run in runs)
    assert (
        "/connectors/x%27%3B%20rm%20-rf%20~%3B%20%27/config"
        in only(cluster(connector(hostile, "sink", errors_tolerance="all"))).fix[0].run
    )


def test_settings_of_a_connector_are_patched_where_that_is_possible() -> None:
    seen = cluster(connector("sink", "sink", errors_tolerance="all"))
    assert " -X PATCH " in only(seen).fix[0].run
    older = only(replace(seen, workers={"connect-1:8083": "3.7.2"})).fix[0].run
    assert '| jq \'. + {"errors.log.enable":"true"}\' | curl -sS --fail -X PUT' in older


def test_a_group_that_is_behind_gets_time_for_what_it_has_not_read() -> None:
    risk = only(cluster(group("billing", "Stable", unread_since=OLD)))
    assert risk.what == (
        "Group billing has not read a record that is more than 5 d old; topic orders keeps records for 7 d, partition 0"
    )
    assert risk.fix[0].run.endswith(f"retention.ms={20 * 86_400_000}")
    assert only(cluster(topic("orders", retention_ms="-1"), group("billing", "Stable", is_lost=True))).fix == ()


def test_no_command_deletes_a_group_whose_consumers_may_be_no_members() -> None:
    risk = only(cluster(group("flink", "Empty", earlier=3)))
    assert [step.run.rpartition("9092 ")[2] for step in risk.fix] == ["--describe --group flink"]
    assert "assign()" in risk.why


def test_missing_addresses_are_refused_by_a_shell() -> None:
    assert "--bootstrap-server ${bootstrap:?} " in only(cluster(topic("lone", (1,)), bootstrap="")).fix[0].run
    silent = connector("sink", "sink", errors_tolerance="all")
    assert only(cluster(silent, connect_url="")).fix[0].run.endswith(" ${connect_url:?}/connectors/sink/config")


def test_tools_sign_in_where_that_is_needed() -> None:
    run = only(cluster(topic("lone", (1,)), tls=True)).fix[0].run
    assert run.startswith("kafka-reassign-partitions.sh --bootstrap-server kafka-1:9092 --command-config client.properties ")


def test_what_is_accepted_is_left_out_with_its_reason() -> None:
    seen = cluster(topic("tmp.a", (1,)), topic("lone", (1,)), group("tmp.b", "Empty"))
    result = judged(seen, [AcceptedRisk("can be rebuilt", patterns={"topic": ("tmp.*",)})])
    assert [risk.subject for risk in result.risks] == ["lone", "tmp.b"]
    assert [(risk.subject, reason) for risk, reason in result.accepted] == [("tmp.a", "can be rebuilt")]
    everywhere = judged(seen, [AcceptedRisk("we know", checks=("topic-one-replica",))])
    assert found(everywhere) == {"group-without-members"}
    both = AcceptedRisk("we know", checks=("topic-one-replica",), patterns={"topic": ("lone",)})
    assert [risk.subject for risk in judged(seen, [both]).risks] == ["tmp.a", "tmp.b"]


def test_the_worst_comes_first() -> None:
    seen = cluster(topic("orders", min_insync_replicas="1"), topic("lone", (1,)), topic("__consumer_offsets", (1,)))
    assert [risk.severity for risk in judged(seen).risks] == ["critical", "high", "medium"]


def test_what_was_not_seen_is_said() -> None:
    assert judged(AuditedCluster()).unseen == ("no broker was seen, so nothing of brokers, topics and groups is judged",)
    mute = replace(broker(2), settings={})
    assert judged(cluster(mute)).unseen[0].startswith("the settings of broker 2 are not known (it is away, or the right")
    assert judged(cluster(group("billing", "Stable", lag=None))).unseen == (
        "the lag of group billing is not known in 1 of 1 partitions",
    )
    assert judged(cluster(group("old", ""))).unseen == (
        "the state of group old is not known (brokers before 2.6 do not list it), so whether it has members is not judged",
    )
    blind = replace(connector("sink", "sink"), settings=None)
    assert judged(cluster(blind)).unseen[0].startswith("the settings of 1 connectors are not known, sink among them")
