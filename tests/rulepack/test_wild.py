"""What people post is diagnosed: the right rule first, and nothing at all about what is benign.

Each case of `wild/` has `kind` (the id of a rule, or benign), `source` (where it was posted) and `log`; `also` names rules that
would be as right. `missed` says why a case is not diagnosed yet: it has to go once the case is. `says` are facts of the log
that what is told first has to name: in its title, cause, impact or fix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.cli.triage import OVER, worst_first
from engine.incident import MemoryLedger
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.pipeline import replay
from tests.rulepack.playing import INGESTED_AT, fix_text, plan

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
EXCERPTS = HERE.parent / "excerpts"
BENIGN = "benign"
ONE_TROUBLE = (  # a line and the exception below it, each known by a rule
    "client-authorization-denied--ksql-streams-thread",
    "client-authorization-denied--strimzi-8643-user-operator-denied",
    "connect-herder-internal-topic--strimzi-mm2-topics-dropped",
    "connect-herder-internal-topic--windows-compose",
    "connect-record-too-large-broker--iceberg-sink-control-topic",
    "connect-sink-put-failed--hdfs-201-invalid-table",
    "connect-sink-put-failed--iceberg-long-name",
    "schema-registry-not-found--console-schemaid",
    "schema-registry-start-failed--schema-registry-481-startup",
    "schema-registry-start-failed--sr-2938-control-flag",
    "spring-retries-exhausted--fatal-deserialization",
    "spring-retries-exhausted--whole-record-printed",
    "txn-state-log-unavailable--streams-eos-init-timeout",
)


@cache
def cases() -> Mapping[str, Mapping[str, Any]]:
    """Return every case by its name."""
    found = {path.stem: _read(path) for path in sorted(HERE.glob("wild/*.yml"))}
    listed = _read(EXCERPTS / "kinds.yml")
    logs = {name: (EXCERPTS / f"{name}.log").read_text(encoding="utf-8") for name in listed}
    return found | {name: {**case, "log": logs[name]} for name, case in listed.items()}


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.mark.parametrize("name", [*(path.stem for path in sorted(HERE.glob("wild/*.yml"))), *_read(EXCERPTS / "kinds.yml")])
def test_a_posted_log_is_diagnosed_and_its_facts_are_told(name: str) -> None:
    case = cases()[name]
    found = sorted(raised().get(name, ()), key=worst_first)
    rules = [incident.rule for incident in found]
    right = not found if case["kind"] == BENIGN else rules[:1] in [[rule] for rule in (case["kind"], *case.get("also", ()))]
    assert right is ("missed" not in case), f"{case['kind']}: raised are {rules or 'none'}"
    told = " ".join([found[0].title, found[0].cause, found[0].impact, fix_text(found[0])]) if found else ""
    assert [fact for fact in case.get("says", ()) if str(fact) not in told] == [], told


@pytest.mark.parametrize("name", ONE_TROUBLE)
def test_lines_of_one_trouble_are_one_message(name: str) -> None:
    assert [incident.rule for incident in raised()[name]] == [cases()[name]["kind"]]


def test_nobody_has_to_follow_more_than_five_steps() -> None:
    assert {name for name, found in raised().items() for incident in found if len(incident.fix) > 5} == set()


@cache
def raised() -> Mapping[str, list[Incident]]:
    """Return what is raised for each case; one reading of all, each in a cluster of its own."""
    ledger = MemoryLedger()
    final = {incident.id: incident for incident in replay(_input(), plan(), ledger)}
    found: dict[str, list[Incident]] = defaultdict(list)
    for incident in final.values():
        if incident.status not in OVER and not incident.pending:
            found[incident.labels["cluster"]].append(incident)
    return found


def _input() -> Iterator[RawLine | Progress]:
    for name, case in cases().items():
        data = str(case["log"]).encode()
        for number, line in enumerate(data.splitlines(), 1):
            yield RawLine(name, number, line, number, INGESTED_AT, {"cluster": name})
        yield Progress(name, len(data), len(data), caught_up=True)
