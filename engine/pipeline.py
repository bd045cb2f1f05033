"""The reference: the whole flow on one screen, pure Python, no Spark, no I/O, no clock of its own.

The Spark job hosts the same stages and must give the same final incidents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.correlate import correlate
from engine.incident import MemoryLedger, group
from engine.match import Observer, match
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap
from engine.ports import Ledger
from engine.quarantine import Quarantine


def replay(
    input: Iterable[RawLine | Progress],
    plan: Plan,
    ledger: Ledger | None = None,
    observe: Observer | None = None,
    quarantine: Quarantine | None = None,
) -> Iterator[Incident]:
    """Yield incident revisions for `input`, in the order they are decided; the last revision of each id is its final state.

    Args:
        input: lines and progress, each source in order; sources may interleave in any way.
        ledger: receives alerts, evidence and incidents; a dictionary when None.
        observe: called once per event with its matches, for counts and unknown lines.
        quarantine: takes what a stage raises on, and all else goes on; without one it is raised.
    """
    records = unwrap(input, plan.formats, quarantine)  # container, JSON, compose and Kibana wrappers off
    blocks = assemble(records, plan.formats, quarantine)  # stack traces and next-line reasons joined
    events = decode(blocks, plan.formats, quarantine)  # time, level, logger, exception chain, identity
    matches = match(events, plan, observe, quarantine)  # signatures; who was heard from
    findings = correlate(matches, plan, quarantine)  # event time; progress arrives in the stream
    return group(findings, plan, ledger or MemoryLedger(), quarantine)
