"""A cluster that a run keeps pictures of is judged like one whose answers are read line by line, as far as a run asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import asdict, replace

from engine.asking import stamped
from engine.incident import MemoryLedger
from engine.model.pictures import KnownPictures
from engine.pipeline import replay
from engine.risks.cluster import AuditedCluster
from engine.risks.judging import AcceptedRisk, judged
from engine.risks.picturing import AuditTerms, pictured_cluster
from engine.risks.reading import read_cluster, texts_of
from tests.rulepack.playing import Story, lines_of, plan
from tests.unit.model.test_pictures import broker, group, lag, partition, pictured, setting, topic

AT = datetime(2026, 11, 26, 22, tzinfo=UTC)
BASE = AuditedCluster("prod", bootstrap="kafka-1:9092", connect_url="http://connect-1:8083", tls=True)
ROUND = [
    "Cluster ID: dG9jc2luLXRlc3RzLTAwMQ",
    "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE\n"
    "1          kafka-1                        9092       a          unfenced   broker",
    "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE\n"
    "2          kafka-2                        9092       b          unfenced   broker",
    "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE\n"
    "3          kafka-3                        9092       null       fenced     broker",
    "ClusterId:              dG9jc2luLXRlc3RzLTAwMQ\nLeaderId:               1\nLeaderEpoch:            4\n"
    "CurrentVoters:          [1,2]\nCurrentObservers:       []",
    "Topic: orders\tTopicId: 8ZOxKq2FRpyr\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: min.insync.replicas=1",
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
    "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2",
    *(
        f"All configs for broker {id_} are:\n  {name}={value} sensitive=false synonyms={{DEFAULT_CONFIG:{name}={value}}}"
        for id_ in (1, 2)
        for name, value in (("auto.create.topics.enable", "true"), ("message.max.bytes", "1048588"))
    ),
    '{"name":"cdc","connector":{"state":"RUNNING","worker_id":"w:8083"},"tasks":[],"type":"source"}',
    '{"cdc":{"topics":["orders"]}}',
]


def test_the_picture_of_a_round_is_the_cluster_that_its_lines_tell() -> None:
    told = stamped(ROUND, AT).decode()
    ledger = MemoryLedger()
    list(replay(lines_of(Story({"asked.log": told}, {"cluster": "prod"})), plan(), ledger))
    picture = ledger.picture("prod", AT + timedelta(minutes=1))
    assert picture is not None
    read = read_cluster(texts_of(told.encode().splitlines()), BASE)
    connectors = {name: replace(each, settings=None) for name, each in read.connectors.items()}
    seen = pictured_cluster(KnownPictures(picture), BASE)
    assert asdict(replace(seen, unseen=())) == asdict(replace(read, connectors=connectors))
    found = {risk.check for risk in judged(read).risks}
    assert {risk.check for risk in judged(seen).risks} == found
    assert found >= {"topic-one-replica", "auto-created-topics", "even-voters"}
    assert "`tocsin audit` asks for them" in judged(seen).unseen[0]


def test_a_group_that_nobody_reads_for_is_compared_with_an_earlier_picture() -> None:
    def behind(lag_then: int | None, lag_now: int, committed: int = 7) -> list[str]:
        def picture(records: int, at: int) -> object:
            return replace(
                lag("billing", "orders", records), values={**lag("billing", "orders", records).values, "committed": at}
            )

        parts = [broker(1), topic("orders"), partition("orders", 0), group("billing", "Empty")]
        now = pictured(*parts, picture(lag_now, committed))  # type: ignore[arg-type]
        then = None if lag_then is None else pictured(*parts, picture(lag_then, 7))  # type: ignore[arg-type]
        risks = judged(pictured_cluster(KnownPictures(now, then), BASE)).risks
        return [risk.what for risk in risks if risk.check == "group-without-members"]

    assert behind(None, 5) == ["Group billing has no members and has not read 5 records of orders"]
    assert behind(3, 5) == [
        "Group billing has no members and has not read 5 records of orders, 2 more than when it was first asked"
    ]
    assert behind(5, 5) == []
    assert behind(3, 5, committed=8) == []


def test_what_is_accepted_and_addresses_come_from_the_configuration() -> None:
    alone = KnownPictures(pictured(broker(1), broker(2), topic("tmp.x"), partition("tmp.x", 0), setting("num.partitions", "1")))
    terms = AuditTerms((AcceptedRisk("scratch", (), {"topic": ("tmp.*",)}),), {"prod": BASE})
    assert terms.judged("prod", alone).risks == ()
    assert [reason for _, reason in terms.judged("prod", alone).accepted] == ["scratch"]
    (risk,) = AuditTerms().judged("other", alone).risks
    assert "--bootstrap-server kafka-1:9092,kafka-2:9092" in risk.fix[0].run
