"""Findings in, incident revisions out: stores what correlation says and decides again for the scopes it touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from engine.incident.decide import decide
from engine.model.incidents import Blind, Evidence, Finding, Incident, Roster, Verdict
from engine.model.rules import Plan
from engine.ports import Ledger

CHUNK = 1000  # findings between two decisions: bounds memory, and the cost of deciding in a storm


def group(findings: Iterable[Finding], plan: Plan, ledger: Ledger) -> Iterator[Incident]:
    """Yield new revisions of incidents; the last one of an id is its state when the findings end."""
    waiting = iter(findings)
    while chunk := list(islice(waiting, CHUNK)):
        ledger.put_findings(
            [f for f in chunk if isinstance(f, Verdict)],
            [f for f in chunk if isinstance(f, Evidence)],
            [f for f in chunk if isinstance(f, Roster)],
            [f for f in chunk if isinstance(f, Blind)],
        )
        for scope in _touched(chunk):
            revisions = decide(ledger.alerts(scope), ledger.incidents(scope), plan, ledger.roster(scope), ledger.evidence)
            ledger.put_incidents(revisions)
            yield from revisions


def _touched(chunk: Sequence[Finding]) -> list[str]:
    scopes = {f.key[0] for f in chunk if isinstance(f, Verdict)} | {f.scope for f in chunk if isinstance(f, Roster)}
    return sorted(scopes)
