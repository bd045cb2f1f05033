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


def _cases() -> Mapping[str, Mapping[str, Any]]:
    """Return every case by its name."""
    found = {path.stem: _read(path) for path in sorted(HERE.glob("wild/*.yml"))}
    listed = _read(EXCERPTS / "kinds.yml")
    logs = {name: (EXCERPTS / f"{name}.log").read_text(encoding="utf-8") for name in listed}
    return found | {name: {**case, "log": logs[name]} for name, case in listed.items()}


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
def test_a_posted_log_is_diagnosed(name: str) -> None:
    case = CASES[name]
    found = [incident.rule for incident in sorted(raised().get(name, ()), key=worst_first)]
    right = not found if case["kind"] == BENIGN else found[:1] in [[rule] for rule in (case["kind"], *case.get("also", ()))]
    assert right is ("missed" not in case), f"{case['kind']}: raised are {found or 'none'}"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "says" in case])
def test_what_is_told_of_a_posted_log_names_its_facts(name: str) -> None:
    first = min(raised()[name], key=worst_first)
    told = " ".join([first.title, first.cause, first.impact, fix_text(first)])
    assert [fact for fact in CASES[name]["says"] if str(fact) not in told] == [], told


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
    for name, case in CASES.items():
        data = str(case["log"]).encode()
        for number, line in enumerate(data.splitlines(), 1):
            yield RawLine(name, number, line, number, INGESTED_AT, {"cluster": name})
        yield Progress(name, len(data), len(data), caught_up=True)
