"""Real brokers are asked: what is told is what Kafka's own tools print, and a broker that is away is known without any log."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient, NewTopic, ResourcePattern, ResourceType
from msgspec.structs import replace

from connectors import kafka_cluster
from connectors.kafka_cluster import admin
from connectors.kafka_cluster.admin import ClusterAsker, KafkaEndpoint
from engine.errors import SourceError
from tests.servers.asking import Asking
from tests.servers.broker import Broker, brokers
from tests.servers.jars import all_jars
from tests.servers.secured import PASSWORD, USER, made_certificate, secured_doors
from tests.servers.topics import Topics

DOCS = Path(__file__).parents[2] / "docs" / "asking.md"
SHIPPING = ["--topic", "orders", "--group", "shipping", "--from-beginning", "--max-messages", "5"]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    with brokers(all_jars(), tmp_path_factory.mktemp("three"), 3) as running:
        yield running


def admin_of(*running: Broker) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=[broker.address for broker in running])


def tool(jars: Path, name: str, address: str, *arguments: str) -> str:
    command = ["java", "-Xmx128m", "-cp", f"{jars}/*", f"org.apache.kafka.tools.{name}", "--bootstrap-server", address]
    return subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, timeout=120).stdout


def rows(text: str) -> set[str]:
    """Return the lines of `text` without stamps, what only newer tools print, and the width of columns."""
    plain = (re.sub(r"^\S+Z ", "", re.sub(r"\tElr:.*", "", line)) for line in text.splitlines())
    return {" ".join(line.split()) for line in plain} - {""}


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_rows_are_those_of_kafkas_own_tools(version: str, tmp_path: Path) -> None:
    jars = all_jars(version)
    with brokers(jars, tmp_path) as (broker,):
        client = admin_of(broker)
        client.create_topics([NewTopic("orders", 3, 1, topic_configs={"retention.ms": "60000"}), NewTopic("a.b_c-d", 1, 1)])
        topics = Topics(broker.address)
        topics.until(lambda: {"orders", "a.b_c-d"} <= topics.names())
        topics.write("orders", [str(number) for number in range(7)])
        topics.close()
        tool(jars, "consumer.ConsoleConsumer", broker.address, *SHIPPING)
        asker = ClusterAsker(KafkaEndpoint(broker.address))
        told = "\n".join(asker.ask(None, whole=True)[1])
        described = tool(jars, "TopicCommand", broker.address, "--describe")
        lags = tool(jars, "consumer.group.ConsumerGroupCommand", broker.address, "--describe", "--group", "shipping")
        states = tool(jars, "consumer.group.ConsumerGroupCommand", broker.address, "--list", "--state")
        asker.close()
        client.close()
    set_here = re.compile(r" ?Configs:.*")
    assert {set_here.sub("", row) for row in rows(described)} <= {set_here.sub("", row) for row in rows(told)}
    assert "Configs: retention.ms=60000" in told
    assert {" ".join(row.split()[:6]) for row in rows(lags) if row.startswith("shipping")} <= rows(told)
    assert {row for row in rows(states) if row.startswith("shipping")} <= rows(told)
    assert "min.insync.replicas=1 sensitive=false synonyms=" in told
    assert f"LeaderId: {broker.id}" in rows(told)


def test_a_broker_that_is_killed_is_an_incident_with_its_topics_and_is_over_when_it_is_back(
    three: list[Broker], tmp_path: Path
) -> None:
    first, victim, third = three
    client = admin_of(first, third)
    alone = {0: [victim.id]}
    everywhere = {0: [broker.id for broker in three]}
    client.create_topics({"account_event": {"assignments": alone}, "orders": {"assignments": everywhere}})
    asking = Asking(kafka_cluster.open_source, tmp_path, bootstrap_servers=f"{first.address},{third.address}")
    asking.until("Topic: account_event\tPartition: 0\tLeader: 2\tReplicas: 2\tIsr: 2")
    asking.until("Topic: orders\tPartition: 0")
    assert asking.incidents() == []
    victim.kill()
    asking.until("Topic: account_event\tPartition: 0\tLeader: none", must_answer=False)
    for _ in range(8):
        asking.round(must_answer=False)
    (incident,) = asking.incidents()
    assert (incident.rule, incident.severity, incident.status) == ("broker-lone-partitions-offline", "critical", "open")
    assert incident.title == "account_event has no leader: its only replica is on broker 2, which is away"
    assert "account_event" in incident.impact
    assert [step for step in incident.fix if "increase-replicas.json" in step.file], incident.fix
    grown = next(step for step in incident.fix if "increase-replicas.json" in step.file)
    assert '"topic":"account_event","partition":0,"replicas":[' in grown.file["increase-replicas.json"].replace(" ", "")
    assert f"--bootstrap-server {first.address}" in grown.run
    victim.start()
    asking.until("Topic: account_event\tPartition: 0\tLeader: 2\tReplicas: 2\tIsr: 2", must_answer=False)
    for _ in range(4):
        asking.round(must_answer=False)
    (incident,) = asking.incidents()
    assert incident.status == "resolved"
    assert re.search(r"verified at \d\d:\d\d UTC by asking the cluster$", incident.why)
    client.close()
    client = admin_of(*three)  # the one before may hold on to a broker that was away
    client.delete_topics(["account_event", "orders"])
    asking.until(
        "Topic 'orders' does not exist as expected", must_answer=False
    )  # that no topic is left is believed in the next round
    asking.close()
    client.close()


@pytest.mark.long
def test_a_stop_in_order_and_a_topic_that_is_deleted_are_no_incident(three: list[Broker], tmp_path: Path) -> None:
    first, second, third = three
    client = admin_of(first, third)
    client.create_topics(
        {"passing": {"assignments": {0: [first.id, second.id, third.id]}}, "lone": {"assignments": {0: [second.id]}}}
    )
    asking = Asking(kafka_cluster.open_source, tmp_path, bootstrap_servers=f"{first.address},{third.address}")
    asking.until("Topic: lone\tPartition: 0\tLeader: 2")
    second.stop()
    asking.every_s = 1  # a restart takes seconds, however often the test asks meanwhile
    asking.until("Topic: lone\tPartition: 0\tLeader: none", must_answer=False)
    second.start()
    asking.until("Topic: lone\tPartition: 0\tLeader: 2", must_answer=False)
    client.close()
    client = admin_of(*three)  # the one before may hold on to a broker that was away
    client.delete_topics(["passing", "lone"])
    asking.until("Topic 'lone' does not exist as expected", must_answer=False)
    asking.every_s = 30
    for _ in range(9):
        asking.round()
    assert asking.incidents() == []
    asking.close()
    client.close()


@pytest.mark.long
def test_the_documented_rights_are_enough_and_one_less_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, certificate = made_certificate(tmp_path)
    doors = secured_doors(store)
    authorizer = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS\n"
    doors = replace(doors, settings=doors.settings + authorizer)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setattr(admin, "BOOTSTRAP_MS", 3000)
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": "env:KAFKA_PASSWORD",
        "ssl.ca.location": str(certificate),
    }
    with brokers(all_jars(), tmp_path, doors=doors) as (broker,):
        client = admin_of(broker)
        client.create_topics([NewTopic("orders", 1, 1)])
        endpoint = KafkaEndpoint(f"127.0.0.1:{doors.ports['SASL_SSL']}", options)
        asker = ClusterAsker(endpoint)
        inventory, _ = asker.ask(None, whole=True)
        assert inventory.topics == {}
        assert [sentence.partition(" on ")[0] for sentence in asker.missing_rights] == [
            "the right DESCRIBE",
            "the right DESCRIBE_CONFIGS",
        ]
        client.create_acls(list(documented_rights()))
        deadline = 100
        while asker.missing_rights and deadline:
            deadline -= 1
            inventory, told = asker.ask(None, whole=True)
        assert list(inventory.topics) == ["orders"]
        assert asker.missing_rights == ()
        assert inventory.quorum
        assert "All configs for broker 1 are:" in "\n".join(told)
        asker.close()
        for wrong, sentence in (
            # A broker may end the connection before its reason arrives.
            (
                {**options, "sasl.username": "nobody"},
                r"does not let us in; check sasl\.mechanism|and the credentials in options",
            ),
            ({**options, "ssl.ca.location": ""}, r"cannot be trusted \(self-signed certificate"),
            ({}, r"does not speak plain Kafka; with TLS, security\.protocol"),
        ):
            with pytest.raises(SourceError, match=sentence):
                ClusterAsker(replace(endpoint, options=wrong)).ask(None, whole=True)
        client.close()


def documented_rights() -> Iterator[ACL]:
    """Yield the rights that docs/asking.md grants."""
    grants = re.findall(r"--operation (\w+) --(cluster|topic|group)", DOCS.read_text(encoding="utf-8"))
    assert grants
    for operation, kind in grants:
        name = "kafka-cluster" if kind == "cluster" else "*"
        pattern = ResourcePattern(ResourceType[kind.upper()], name)
        right = ACLOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()]
        yield ACL(f"User:{USER}", "*", right, ACLPermissionType.ALLOW, pattern)
