"""The cases of the corpus, and how the shipped rules judge them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml
from msgspec import Struct, convert

from engine.cli.triage import OVER, worst_first
from engine.incident import MemoryLedger
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.pipeline import replay
from tests.rulepack.playing import INGESTED_AT, fix_text, plan

HERE = Path(__file__).parent
EXCERPTS = HERE.parent / "excerpts"
BENIGN = "benign"


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """A posted log and its diagnosis; `rule` is the rule that has to come first, or BENIGN (README.md has the rest)."""

    rule: str
    name: str
    source: str
    log: str
    also: tuple[str, ...] = ()
    says: tuple[str | int, ...] = ()
    incidents: int | None = None
    missed: str = ""

    @property
    def id(self) -> str:
        """The name that is unique in the corpus."""
        return f"{self.rule}--{self.name}"


class Outcome(Struct, frozen=True):
    """What the rules make of a case: the incidents, worst first, and what is wrong with them (empty: nothing)."""

    case: Case
    incidents: Sequence[Incident]
    faults: Sequence[str]


@cache
def cases() -> Mapping[str, Case]:
    """Return every case by its id, those of tests/excerpts too, in the order of the files."""
    posted = [
        convert({"rule": path.stem, **document}, Case)
        for path in sorted(HERE.glob("*.yml"))
        for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    ]
    by_id = {case.id: case for case in (*posted, *_excerpts())}
    assert len(by_id) == len(posted) + len(list(_excerpts())), "two cases of a rule have one name"
    return by_id


def _excerpts() -> Iterator[Case]:
    listed = yaml.load((EXCERPTS / "kinds.yml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    for name, facts in listed.items():
        log = (EXCERPTS / f"{name}.log").read_text(encoding="utf-8")
        rule = facts.pop("kind")
        yield convert({"rule": rule, "name": name, "source": "tests/excerpts/README.md", "log": log, **facts}, Case)


@cache
def outcomes() -> Mapping[str, Outcome]:
    """Return what is made of every case, by its id."""
    return outcomes_of(cases().values())


def outcomes_of(wanted: Iterable[Case]) -> Mapping[str, Outcome]:
    """Return what is made of these cases, by their ids. All are read in one pass, each in a cluster of its own."""
    asked = list(wanted)
    ledger = MemoryLedger()
    final = {incident.id: incident for incident in replay(_input(asked), plan(), ledger)}
    raised: dict[str, list[Incident]] = defaultdict(list)
    for incident in final.values():
        if incident.status not in OVER and not incident.pending:
            raised[incident.labels["cluster"]].append(incident)
    return {case.id: _judged(case, sorted(raised[case.id], key=worst_first)) for case in asked}


def _judged(case: Case, incidents: Sequence[Incident]) -> Outcome:
    rules = [incident.rule for incident in incidents]
    faults: list[str] = []
    if case.rule == BENIGN:
        faults += [f"raised are {rules}"] if rules else []
    elif not rules or rules[0] not in (case.rule, *case.also):
        faults.append(f"raised are {rules or 'none'}")
    elif case.incidents not in (None, len(incidents)):
        faults.append(f"{len(incidents)} incidents: {rules}")
    return Outcome(case, incidents, faults)


def unnamed(outcome: Outcome) -> Sequence[str]:
    """Return the facts of the case that its first incident does not name."""
    if not outcome.incidents:
        return [str(fact) for fact in outcome.case.says]
    first = outcome.incidents[0]
    text = " ".join([first.title, first.cause, first.impact, fix_text(first)])
    return [str(fact) for fact in outcome.case.says if str(fact) not in text]


def _input(asked: Iterable[Case]) -> Iterator[RawLine | Progress]:
    for case in asked:
        data = case.log.encode()
        for number, line in enumerate(data.splitlines(), 1):
            yield RawLine(case.id, number, line, number, INGESTED_AT, {"cluster": case.id})
        yield Progress(case.id, len(data), len(data), caught_up=True)
