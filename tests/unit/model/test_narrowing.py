"""What narrows logs: captured fields only, and never to somebody who says nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.model import narrowing
from tests.unit.cli.incidents import TOO_LARGE, incident

LINE = TOO_LARGE.evidence[0]


def line(source_id: str, **fields: str) -> str:
    return narrowing.kql(narrowing.of_line(replace(LINE, source_id=source_id), fields))


@pytest.mark.parametrize(
    ("source_id", "query"),
    [
        ("/var/log/kafka/server.log", 'log.file.path: "/var/log/kafka/server.log"'),
        ("/var/log/a%23b.log", 'log.file.path: "/var/log/a#b.log"'),
        ("compose.log#kafka-connect-2", 'container.name: "kafka-connect-2"'),
        ("pods.log#kafka-0/kafka", 'container.name: "kafka"'),
        ("logs/broker-1:/var/log/kafka/server.log", 'log.file.path: "/var/log/kafka/server.log" and host.name: "broker-1"'),
        ("logs/node-1:kafka-connect", 'container.name: "kafka-connect" and host.name: "node-1"'),
        ("docker/shop-kafka-1.log", 'container.name: "shop-kafka-1"'),
        ("docker/shop-kafka-1.log.2.gz", 'container.name: "shop-kafka-1"'),
        ("docker/kafka.log~2", 'container.name: "kafka"'),
        ("journald/broker-1:kafka.service", 'systemd.unit: "kafka.service" and host.name: "broker-1"'),
        ("journald/broker-1:shop-kafka-1", 'container.name: "shop-kafka-1" and host.name: "broker-1"'),
        ("server.log", ""),
        ("logs-3", ""),
        ("stdin", ""),
    ],
)
def test_a_line_is_sought_by_what_its_source_says(source_id: str, query: str) -> None:
    assert line(source_id) == query


def test_the_fields_are_those_of_the_configuration_and_an_empty_one_is_not_asked_for() -> None:
    source_id = "logs/broker-1:/var/log/server.log"
    assert line(source_id, host="kubernetes.node.name", file="") == 'kubernetes.node.name: "broker-1"'


def test_an_incident_is_sought_by_its_labels() -> None:
    told = incident(labels={"cluster": "prod", "topic": "a"})
    fields = {"cluster": "labels.cluster", "topic": "kafka.topic", "broker": "broker"}
    assert narrowing.kql(narrowing.of_incident(told, fields)) == 'labels.cluster: "prod" and kafka.topic: "a"'


def test_an_incident_whose_labels_no_field_holds_is_sought_by_the_sources_of_its_lines() -> None:
    one, two = replace(LINE, source_id="a.log#one"), replace(LINE, source_id="a.log#two")
    told = narrowing.of_incident(incident(evidence=(one, two, one)), {"nothing": "x"})
    assert narrowing.kql(told) == '(container.name: "one") or (container.name: "two")'
    assert narrowing.of_incident(incident(evidence=(one, replace(LINE, source_id="stdin"))), {}) == ()
    many = tuple(replace(LINE, source_id=f"a.log#{n}") for n in range(4))
    assert narrowing.of_incident(incident(evidence=many), {}) == ()


def test_an_incident_whose_lines_are_documents_is_sought_in_their_indices() -> None:
    lines = [replace(LINE, origin=f"elasticsearch:logs-{n}/x", source_id="logs*/h:f") for n in (1, 2, 1)]
    told = narrowing.of_incident(incident(evidence=tuple(lines)), {})
    assert narrowing.kql(told) == '(_index: "logs-1") or (_index: "logs-2")'


def test_of_who_says_nothing_the_cluster_is_shown() -> None:
    silent = incident(labels={"cluster": "prod", "broker": "3"}, is_silence=True)
    fields = {"broker": "labels.broker", "cluster": "labels.cluster"}
    assert narrowing.kql(narrowing.of_incident(silent, fields)) == 'labels.cluster: "prod"'
    assert narrowing.of_incident(silent, {"broker": "labels.broker"}) == ()


def test_values_stay_inside_their_quotes_in_both_languages() -> None:
    hostile = ((("a", 'x" or *: "\\'), ("b c`d", "1")),)
    assert narrowing.kql(hostile) == 'a: "x\\" or *: \\"\\\\" and b c`d: "1"'
    said = narrowing.esql(hostile, "logs-*", "@timestamp")
    assert said == (
        'FROM logs-* METADATA _id, _index | WHERE a == "x\\" or *: \\"\\\\" AND `b c``d` == "1" | SORT @timestamp DESC'
    )
    both = narrowing.esql(((("a", "1"),), (("a", "2"),)), "logs-*", "ts")
    assert both == 'FROM logs-* METADATA _id, _index | WHERE (a == "1") OR (a == "2") | SORT ts DESC'
