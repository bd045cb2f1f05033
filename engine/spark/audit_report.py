"""The driver's part in the audit: tell the operator how many blocks were audited, and how many of them differ."""

from __future__ import annotations

from collections.abc import Iterable

from engine.columns.audit import AuditResult
from engine.spark.rows import BatchRow

REPORT_FACTOR = 10  # the number of audited blocks is reported again when it is this many times as high


class AuditReport:
    """The audited blocks of one run of a job. The differences themselves are notices (InputNotice)."""

    def __init__(self) -> None:
        self._blocks = self._reported = self._different = 0

    def sentences(self, items: Iterable[BatchRow]) -> list[str]:
        """Return a sentence with the counts so far if it is due: with the first audited block, whenever there are REPORT_FACTOR
        times as many as in the last one, and with each difference."""
        results = [item for item in items if isinstance(item, AuditResult)]
        different = sum(len(result.differences) for result in results)
        self._blocks += sum(result.blocks for result in results)
        self._different += different
        if not results or not (different or self._blocks >= REPORT_FACTOR * self._reported):
            return []
        self._reported = self._blocks
        blocks = f"{self._blocks:,} block{'' if self._blocks == 1 else 's'}"
        outcome = f"{self._different:,} differ" if self._different else "no difference"
        return [f"audit: {blocks} also read by the reference: {outcome}"]
