"""Where a cluster is asked, its fixes have no gap: rules that use addresses, topics, groups or partitions with one replica."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.cli.rule_tests import narrow_plan
from engine.dsl import builtin_rules, load_tests
from engine.dsl.rule_test import RuleTest
from engine.incident import MemoryLedger
from engine.model.expressions import names
from engine.model.incidents import DAWN, Incident
from engine.model.pictures import StatedFact
from engine.model.placeholders import unfilled_in, unfilled_of
from engine.model.rules import Hole, Rule
from engine.pipeline import replay
from tests.rulepack.playing import Story, lines_of, one, plan
from tests.unit.model.test_pictures import broker, fact, group, lag, partition, setting, topic

FILLED = frozenset(("bootstrap", "brokers", "topic", "group", "lone_topic", "lone_partition"))
GUESSED = frozenset(("topic", "group"))  # where no line names it, only a step that changes nothing gets it


def values_of(rule: Rule) -> frozenset[str]:
    """Return the names of the values that the commands, settings and files of a fix need."""
    templates = [*rule.runbook.verify]
    for step in rule.runbook.fix:
        templates += [*step.run, *step.set.values(), *step.also.values(), *step.file.values()]
    holes = (part for template in templates for part in template.parts if isinstance(part, Hole))
    return frozenset(name.partition(".")[0] for hole in holes for name in names(hole.expression))


def filled_rules() -> Sequence[str]:
    return sorted(id_ for id_, rule in plan().rules().items() if values_of(rule) & FILLED)


def played(test: RuleTest, facts: Sequence[StatedFact] = ()) -> list[Incident]:
    """Return the incidents of a test of a rule, with a picture that consists of `facts`."""
    ledger = MemoryLedger()
    ledger.put_facts(facts)
    lines = lines_of(Story(test.logs, test.labels))
    final = {incident.id: incident for incident in replay(lines, narrow_plan(plan(), test.rule_id), ledger)}
    return [incident for incident in final.values() if incident.key[1] == test.rule_id and incident.status != "retracted"]


def gaps_of(incident: Incident) -> list[str]:
    """Return the names of the values that a picture should have filled in, sorted."""
    shown = {name for step in incident.fix if not step.changes_state for name in unfilled_of(step)}
    return sorted(FILLED & (shown | set(unfilled_in(incident)) - GUESSED))


def picture_around(incident: Incident) -> Iterator[StatedFact]:
    """Yield the facts of a cluster in which what an incident is about is there, with all that uses it."""
    entity = {label: value for label, value in incident.key[2] if not value.startswith("?")}
    topics = [str(entity.get("topic", entity.get("partition_topic", incident.captures.get("topic", "orders")))), "payments"]
    groups = [entity.get("group", "shipping")]
    facts = [*(broker(id_) for id_ in (1, 2, 3)), setting("message.max.bytes", "1048588")]
    for name in dict.fromkeys(topics):
        facts += [topic(name), partition(name, 0, replicas="1", isr="1"), *(lag(reader, name, 3) for reader in groups)]
    facts += [group(reader) for reader in groups]
    connector = entity.get("connector", "cdc")
    facts.append(fact("connector", connector, connector=connector, type="source"))
    facts.append(fact("connector-topics", connector, topics=",".join(topics)))
    yield from (replace(each, scope=incident.key[0], at=DAWN) for each in facts)


@pytest.mark.parametrize("rule_id", filled_rules())
def test_no_gap_is_left_that_a_picture_fills(rule_id: str) -> None:
    tests = [test for test in load_tests([builtin_rules()])[rule_id] if test.fires is not None and not test.timeline]
    gaps: dict[str, list[str]] = {}
    for test in tests[:1]:
        for incident in played(test):
            asked = [each for each in played(test, list(picture_around(incident))) if each.id == incident.id]
            gaps |= {each.title: left for each in asked if (left := gaps_of(each))}
    assert gaps == {}


STATUS = Path(__file__).parents[2] / "samples" / "1-silent-cdc-connector" / "rest-status.json"
ASKED = """\
2023-02-02T17:00:00.000000000Z Cluster ID: xyz
2023-02-02T17:00:00.000000000Z ID         HOST       PORT       RACK       STATE      ENDPOINT_TYPE
2023-02-02T17:00:00.000000000Z 1          kafka-1    9092       null       unfenced   broker
2023-02-02T17:00:00.000000000Z Topic: AAAA.BBBB.CCCCC\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: CONFIGS
2023-02-02T17:00:00.000000000Z All configs for broker 1 are:
2023-02-02T17:00:00.000000000Z   message.max.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}
2023-02-02T17:00:00.000000000Z {"name":"cdc-source","connector":{"state":"RUNNING","worker_id":"c"},"tasks":[],"type":"source"}
2023-02-02T17:00:00.000000000Z {"cdc-source":{"topics":["AAAA.BBBB.CCCCC"]}}
"""


def test_a_status_alone_gives_a_hint_of_the_topic_and_no_command_that_changes_it() -> None:
    status = json.dumps(json.loads(STATUS.read_text(encoding="utf-8")))
    incident = one(Story({"asked.log": f"{ASKED}2023-02-02T17:05:00.000000000Z {status}\n"}, {"cluster": "prod"}))
    assert (incident.rule, incident.labels["connector"]) == ("connect-record-too-large-client", "cdc-source")
    (step,) = [step for step in incident.fix if "max.message.bytes" in step.run]
    assert "--bootstrap-server kafka-1:9092 " in step.run
    assert "--entity-name ${topic:?} " in step.run
    assert "(the lines do not name the topic; it may be AAAA.BBBB.CCCCC)" in step.do
    assert "AAAA.BBBB.CCCCC" not in incident.title + incident.cause
    assert "connector cdc-source uses topic AAAA.BBBB.CCCCC" in incident.impact
    assert set(unfilled_in(incident)) == {"connect_url", "topic"}


@pytest.mark.parametrize(
    ("configs", "told", "is_done"),
    [
        ("", "max.message.bytes of AAAA.BBBB.CCCCC is 1048588 by default", False),
        ("max.message.bytes=4194304", "max.message.bytes of AAAA.BBBB.CCCCC is 4194304 set for the topic", True),
    ],
)
def test_a_topic_that_the_lines_name_is_told_with_its_present_limit(configs: str, told: str, is_done: bool) -> None:
    status = json.dumps(json.loads(STATUS.read_text(encoding="utf-8")))
    sent = "Task{id=cdc-source-0} failed to send record to AAAA.BBBB.CCCCC: \\n"
    status = status.replace("org.apache.kafka.connect.errors.ConnectException: ", sent, 1)
    record = f"{ASKED.replace('CONFIGS', configs)}2023-02-02T17:05:00.000000000Z {status}\n"
    incident = one(Story({"asked.log": record}, {"cluster": "prod"}))
    (step,) = [step for step in incident.fix if "max.message.bytes" in step.run]
    assert "--entity-name AAAA.BBBB.CCCCC " in step.run
    assert (told in step.do, step.is_done, step.do.startswith("Done already: ")) == (True, is_done, is_done)
