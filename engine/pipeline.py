"""The reference: the whole flow on one screen, in pure Python, without Spark, I/O or a clock of its own.

The Spark job hosts the same stages and must end with the same incidents.
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
    """Yield incident revisions for `input`, in the order of decision; the last revision of each id is its final state.

    Args:
        input: lines and progress, in order for each source; sources may interleave in any way.
        ledger: stores alerts, evidence and incidents; a new MemoryLedger when None.
        observe: called once per event with its matches, for counts and unknown lines.
        quarantine: takes the input that a stage raises on, and the rest is processed; when None the exception is raised.
    """
    records = unwrap(input, plan.formats, quarantine)  # remove container, JSON, compose and Kibana wrappers
    blocks = assemble(records, plan.formats, quarantine)  # join stack traces and next-line reasons
    events = decode(blocks, plan.formats, quarantine)  # time, level, logger, exception chain, identity
    matches = match(events, plan, observe, quarantine)  # signatures; which sources were active
    findings = correlate(matches, plan, quarantine)  # event time; progress arrives in the stream
    return group(findings, plan, ledger or MemoryLedger(), quarantine)
