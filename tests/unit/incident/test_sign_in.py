"""The commands of a fix at a listener that wants TLS or a login."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.incident import MemoryLedger, group
from engine.incident.sign_in import is_secured, signed_in, signed_in_command
from engine.model.incidents import RenderedStep, Verdict
from engine.model.rules import Step
from tests.unit.incident.scene import alert, plan, rule, text

FILE = "client.properties"


@pytest.mark.parametrize(
    "text",
    [
        "\tsecurity.protocol = SASL_SSL",
        "security.protocol: sasl_plaintext",
        "'security.protocol': 'SSL'",
        '"security.protocol":"SASL_SSL"',
        "\tsecurity.inter.broker.protocol = SSL",
        "advertised.listeners = INSIDE://kafka:29092,SASL_SSL://kafka:9093",
        "%3|1664967600.1|FAIL|app#producer-1| [thrd:sasl_ssl://kafka:9093/bootstrap]: broker down",
        "ssl://kafka:9093/1: Disconnected",
        "[SocketServer brokerId=1] ListenerName(SASL_SSL)",
        "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
        "at org.apache.kafka.common.network.SslTransportLayer.handshake(SslTransportLayer.java:300)",
        "[Producer clientId=a] Connection to node -1 (kafka/10.0.0.1:9093) failed authentication due to: SSL handshake failed",
        "[SocketServer listenerType=ZK_BROKER, nodeId=1] Failed authentication with /10.0.0.7 (channelId=1)",
        "Principal = User:alice is Denied Operation = Describe from host = 10.0.0.1",
        "principal=User:Alice, clientAddress=/10.0.0.7",
        "Connection to node -1 (kafka/10.0.0.1:9092) terminated during authentication.",
        "data-plane-kafka-network-thread-0-ListenerName(REPLICATION-9091)-SSL-1",
        "kafka: client has run out of available brokers to talk to: kafka server: SASL Authentication failed",
        "Authentication failed due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "Connection to pkc-1.eu-west-1.aws.confluent.cloud:9092 failed",
    ],
)
def test_what_shows_that_a_listener_wants_tls_or_a_login(text: str) -> None:
    assert is_secured(["Connected", text], {})


@pytest.mark.parametrize(
    "text",
    [
        "\tsecurity.protocol = PLAINTEXT",
        "listener.security.protocol.map = PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "advertised.listeners = PLAINTEXT://kafka:9093",
        "Principal = User:ANONYMOUS is Denied Operation = Describe from host = 10.0.0.1",
        "Opening socket connection to server zk/10.0.0.1:2181. Will not attempt to authenticate using SASL (unknown error)",
        "javax.net.ssl.SSLHandshakeException: PKIX path building failed at io.confluent.kafka.schemaregistry.RestService",
        "MqttException: unable to connect to ssl://mqtt.example.com:8883",
        "[thrd:kafka:9093/bootstrap]: Connect to ipv4#10.0.0.1:9093 failed",
    ],
)
def test_what_shows_no_such_listener(text: str) -> None:
    assert not is_secured([text], {})


def test_settings_that_the_process_printed_show_it() -> None:
    assert is_secured([], {"ProducerConfig security.protocol": "SASL_SSL"})
    assert not is_secured([], {"ProducerConfig security.protocol": "PLAINTEXT", "ConsumerConfig group.id": "SSL"})


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("kafka-topics.sh --bootstrap-server ${bootstrap:?} --describe", "--command-config"),
        ("kafka-metadata-quorum.sh --bootstrap-controller c-1:9093 describe --status", "--command-config"),
        (r"bin\windows\kafka-acls.bat --bootstrap-server kafka:9092 --list", "--command-config"),
        ("kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic a", "--consumer.config"),
        ("kafka-leader-election.sh --bootstrap-server kafka:9092 --election-type preferred", "--admin.config"),
        ("kafka-cluster.sh unregister --bootstrap-server kafka:9092 --id 4", "--config"),
        ("kafka-streams-application-reset.sh --bootstrap-server kafka:9092 --application-id a", "--config-file"),
    ],
)
def test_the_file_stands_behind_the_address_by_the_option_of_the_tool(command: str, option: str) -> None:
    address = command[command.index("--bootstrap") :].split()[1]
    added = signed_in_command(command)
    assert added == command.replace(address, f"{address} {option} {FILE}")
    assert signed_in_command(added) == added


@pytest.mark.parametrize(
    "command",
    [
        "",
        "kafka-topics.sh --zookeeper ${zookeeper:?} --list",
        "kafka-dump-log.sh --files /data/a-0/0.log",
        "rpk topic describe a",
        "curl -s http://connect:8083/connectors",
        "kafka-topics.sh --bootstrap-server kafka:9092 --list --command-config admin.conf",
        "kafka-topics.sh --bootstrap-server kafka:9092 --topic it's --command-config admin.conf",
    ],
)
def test_a_command_that_asks_no_broker_or_has_a_file_stays_as_it_is(command: str) -> None:
    assert signed_in_command(command) == command


def test_the_first_step_with_the_file_says_what_stands_in_it() -> None:
    command = "kafka-topics.sh --bootstrap-server kafka:9092 --list"
    steps = [RenderedStep("Wait"), RenderedStep("Look", run=command), RenderedStep("Again", run=command)]
    wait, first, second = signed_in(steps)
    assert wait == RenderedStep("Wait")
    assert first.do == f"Look ({FILE}: security.protocol and the sasl.* or ssl.* settings of a client that may do this)"
    assert (first.run, second.do) == (second.run, "Again")
    [own] = signed_in([RenderedStep("Name the settings with --command-config", run=command)])
    assert own.do == "Name the settings with --command-config"


@pytest.mark.parametrize("context", [{}, {"prod.bootstrap": "kafka:9093"}, {"other.signs_in": "yes"}, {"prod.signs_in": "yes"}])
@pytest.mark.parametrize("printed", [{}, {"ProducerConfig security.protocol": "SASL_SSL"}])
def test_the_commands_of_a_cluster_with_a_login_name_a_file(context: dict[str, str], printed: dict[str, str]) -> None:
    run = (text("kafka-topics.sh"), text("--bootstrap-server"), text("kafka:9093"), text("--list"))
    refused = rule("refused", fix=[Step(text("Look"), run=run)])
    rules = replace(plan(replace(refused, runbook=replace(refused.runbook, verify=run))), context=context)
    refusal, ledger = replace(alert("refused", 0), settings=printed), MemoryLedger()
    list(group([Verdict(refusal.key, (refusal,))], rules, ledger))
    [incident] = ledger.incidents("prod")
    named = "--command-config client.properties"
    wanted = bool(printed) or "prod.signs_in" in context
    assert [named in incident.fix[0].run, named in incident.verify] == [wanted, wanted]
