"""A fix names a setting once; who printed the lines decides how it is spelled: a log of each dialect."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import re2

from engine.dsl import builtin_rules, load
from engine.model.incidents import Incident
from engine.model.rules import Plan
from engine.pipeline import replay
from tests.rulepack.dialects import AGAIN, COMMANDS, JAVA, LOOK, MOVE, NO_DIALECT, POLL, SPEAK, SPOKEN, SPOKEN_COMMANDS
from tests.rulepack.playing import Story, lines_of

RULE = """\
id: too-slow
title: Too slow
severity: high
component: any
detection: {seen: "TROUBLE", condition: seen}
runbook:
  cause: It is slow.
  impact: It stands still.
  fix:
    - {do: Give it less, where: client, set: {max.poll.records: "1", session.timeout.ms: "120000"}}
    - {do: Send more, where: client, set: {max.request.size: "2097152"}}
    - {do: Wait longer, where: client, set: {request.timeout.ms: "60000"}}
    - {do: Lead it, where: client, set: {group.id: g, main.consumer.fetch.min.bytes: "1", my.own.setting: x}}
    - {do: Move it, where: broker, set: {log.dirs: /data, controller.quorum.voters: "1@a:9093"}}
    - {do: Open it, where: worker, set: {producer.max.request.size: "2097152"}}
    - {do: "Set security.protocol to SASL_SSL", where: client}
    - {do: Read it anew, where: connector, set: {snapshot.mode: initial}}
    - {do: Restart it, where: connector, run: [curl, -X, POST, "http://c:8083/connectors/cdc/restart"], changes_state: true}
    - {do: Look at it, where: broker, run: [kafka-topics.sh, --bootstrap-server, "k:9092", --describe, --topic, orders]}
    - {do: Allow it, where: broker, run: [kafka-acls.sh, --bootstrap-server, "k:9092", --list]}
    - {do: Reach it, where: broker, run: [kafka-broker-api-versions.sh, --bootstrap-server, "k:9092"]}
    - {do: Step over it, where: client, run: [kafka-consumer-groups.sh, --bootstrap-server, "k:9092", --reset-offsets]}
  verify: [curl, "http://c:8083/connectors/cdc/status"]
  next_checks: [Is max.poll.interval.ms longer than the slowest record?, Is the process alive?]
  references:
    - https://kafka.apache.org/documentation/#consumerconfigs_max.poll.interval.ms
    - https://kafka.apache.org/documentation/#security_sasl
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The shipped dialects and formats with one rule."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "too-slow.yml").write_text(RULE)
    return load([folder, builtin_rules() / "dialects", builtin_rules() / "formats"])


def incident_of(line: str, labels: Mapping[str, str], plan: Plan, **others: str) -> Incident:
    """Return the last incident of a log of `line`, and of the logs `others`."""
    lines = lines_of(Story({"a.log": f"{line}\n", **others}, dict(labels)))
    return [item for item in replay(lines, plan) if item.rule == "too-slow"][-1]


@pytest.mark.parametrize("name", SPOKEN)
def test_the_speaker_decides_the_spelling(name: str, plan: Plan) -> None:
    line, labels, settings = SPOKEN[name]
    incident = incident_of(line, labels, plan)
    assert [dict(step.set) for step in incident.fix] == [dict(settings.get(n, java)) for n, java in enumerate(JAVA)]


@pytest.mark.parametrize("name", SPOKEN)
def test_the_speaker_decides_the_command(name: str, plan: Plan) -> None:
    line, labels, _ = SPOKEN[name]
    incident = incident_of(line, labels, plan)
    expected = {**COMMANDS, **SPOKEN_COMMANDS.get(name, {})}
    assert {n: step.run for n, step in enumerate(incident.fix) if n in COMMANDS} == expected
    assert bool(incident.verify) is bool(expected[AGAIN])


def test_a_command_that_does_not_work_there_leaves_what_to_know_instead(plan: Plan) -> None:
    line, labels, _ = SPOKEN["nifi"]
    assert "Restart it (NiFi has no Connect worker: stop the processor" in incident_of(line, labels, plan).fix[AGAIN].do


def test_what_to_know_instead_is_said_once(plan: Plan) -> None:
    line, labels, _ = SPOKEN["scala-clients"]
    steps = incident_of(line, labels, plan).fix
    assert [step.do.count("spelled for Kafka 0.8") for step in steps] == [int(n in (POLL, LOOK)) for n, _ in enumerate(steps)]


def test_every_dialect_is_spoken_here() -> None:
    assert {path.stem for path in (builtin_rules() / "dialects").glob("*.yml")} == {*SPOKEN}


@pytest.mark.parametrize("line", NO_DIALECT.values(), ids=[*NO_DIALECT])
def test_without_a_certain_speaker_a_setting_has_kafkas_name(line: str, plan: Plan) -> None:
    assert [dict(step.set) for step in incident_of(line, {}, plan).fix] == JAVA


def test_two_clients_that_differ_are_shown_kafkas_names(plan: Plan) -> None:
    (spring, *_), (python, *_) = SPOKEN["spring"], SPOKEN["kafka-python"]
    assert [dict(step.set) for step in incident_of(spring, {}, plan, other=f"{python}\n").fix] == JAVA


def test_a_line_of_no_dialect_takes_nothing_away(plan: Plan) -> None:
    line, labels, settings = SPOKEN["spring"]
    plain = NO_DIALECT["a plain client of Java"]
    assert dict(incident_of(line, labels, plan, other=f"{plain}\n").fix[POLL].set) == settings[POLL]


def test_the_step_says_for_whom_it_is_spelled_and_what_does_not_exist(plan: Plan) -> None:
    line, labels, _ = SPOKEN["librdkafka"]
    less, more, *_ = incident_of(line, labels, plan).fix
    assert (less.do, more.do) == (
        "Give it less (librdkafka has no max.poll.records: it hands out one record after the other)",
        "Send more (spelled for librdkafka)",
    )


def test_the_clients_of_a_task_are_configured_at_its_connector(plan: Plan) -> None:
    line, labels, _ = SPOKEN["connect-task"]
    assert [step.where for step in incident_of(line, labels, plan).fix] == [
        *["connector"] * 4,
        *["broker", "worker", "client", "connector", "connector", "broker", "broker", "broker", "client"],
    ]


def test_words_that_name_what_the_speaker_lacks_say_so_and_checks_and_references_of_it_are_left_out(plan: Plan) -> None:
    incident = incident_of(SPOKEN["sarama"][0], {}, plan)
    assert incident.fix[SPEAK].do.startswith(
        "Set security.protocol to SASL_SSL (sarama has no security.protocol: it takes Net.TLS.Enable"
    )
    assert incident.next_checks == ("Is the process alive?",)
    assert incident.references == ("https://kafka.apache.org/documentation/#security_sasl",)


def test_without_a_certain_speaker_every_check_and_reference_stays(plan: Plan) -> None:
    incident = incident_of(NO_DIALECT["a plain client of Java"], {}, plan)
    assert incident.fix[SPEAK].do == "Set security.protocol to SASL_SSL"
    assert (len(incident.next_checks), len(incident.references)) == (2, 2)


def test_no_other_dialect_of_its_levels_takes_a_line(plan: Plan) -> None:
    for dialect in plan.dialects:
        line, labels, _ = SPOKEN[dialect.name]
        texts = [line, *labels.values()]
        rivals = [
            other.name
            for other in plan.dialects
            if other.rank <= dialect.rank
            and other is not dialect
            and {*other.places} & {*dialect.places}
            and any(re2.search(pattern, text) for pattern in (*other.lines, *other.labels.values()) for text in texts)
        ]
        assert rivals == [], dialect.name


def test_a_log_of_a_broker_never_becomes_one_of_a_client(plan: Plan) -> None:
    line, labels, settings = SPOKEN["confluent-image"]
    incident = incident_of(line, labels, plan)
    assert {*settings} == {MOVE} and dict(incident.fix[POLL].set) == JAVA[POLL]
