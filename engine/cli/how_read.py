"""Tells how the input of a scan was read: what columns decided, what the reference read and why, and what the audit found."""

from __future__ import annotations

from collections.abc import Iterator

from engine.cli.output import count
from engine.cli.triage import Triage
from engine.columns.bounded import COLUMNS_FROM_BYTES, ReadingCost


def reading_cost(cost: ReadingCost) -> Iterator[str]:
    """Yield sentences about how the input was read."""
    if cost.lines_one_by_one:
        yield f"{count(cost.lines_one_by_one, 'line')} read one by one: columns begin at {COLUMNS_FROM_BYTES >> 10} KiB"
    if not cost.lines:
        return
    events = cost.decided + cost.by_reference
    share = cost.by_reference / events if events else 0.0
    yield (
        f"{count(cost.lines, 'line')} read in columns: {count(cost.decided, 'event')} decided by them, "
        f"{cost.by_reference:,} ({share:.2%}) by the reference"
    )
    for reason, number in cost.reasons.items():
        yield f"  {number:,}: {reason}"
    if cost.failed:
        yield f"  {count(cost.failed, 'block')} read by the reference as columns raised an error; --audit shows the input"
    yield (
        f"{count(cost.texts, 'text')} that differ in more than digits; {cost.classes:,} bear a match or an error; "
        f"{cost.table_bytes / 1e6:.1f} MB"
    )


def audit_report(triage: Triage) -> Iterator[str]:
    """Yield what the audit found."""
    if not triage.audited_blocks:
        yield "nothing was audited: all of the input was read by the reference"
    elif not triage.audit:
        yield f"{count(triage.audited_blocks, 'block')} also read by the reference: no difference"
    yield from triage.audit
