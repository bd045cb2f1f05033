"""The driver's part in quarantine: write dead letters to a file beside the checkpoint, evaluate the rules about tocsin on those
that only the driver has met, and report how many events were misdated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from engine.codec import dumps
from engine.errors import TocsinError
from engine.incident import group
from engine.match import redactor_of
from engine.model.incidents import Incident
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Tick
from engine.model.rules import Plan
from engine.ports import Ledger
from engine.quarantine import Quarantine, summed
from engine.spark.own import evaluate_own, event_of_notice, notice_of
from engine.spark.rows import BatchRow
from engine.spark.slices import own_rules

FILE_BYTES = 4 << 20  # of the file of dead letters; older ones are in a second file of the same size
REPORT_FACTOR = 10  # misdated events of a source are reported again when there are this many times as many


def file_of(checkpoint: Path) -> Path:
    """Return the file of dead letters, one JSON value a line; older ones are in the file beside it that ends with `.1`."""
    return checkpoint / "quarantine.jsonl"


class DeadLetterFile:
    """The dead letters of one run of a job.

    Args:
        scope: the scope of incidents about dead letters that belong to no scope.
    """

    def __init__(self, plan: Plan, checkpoint: Path, scope: str) -> None:
        self._plan, self._path, self._scope = plan, file_of(checkpoint), scope
        self._stored_state: dict[str, str] = {}
        self._next_state: dict[str, str] = {}
        self._misdated_events: dict[str, int] = {}
        self._reported: dict[str, int] = {}

    def incidents_of(self, letters: Sequence[DeadLetter], ledger: Ledger) -> list[Incident]:
        """Evaluate the rules about tocsin on the dead letters of grouping, which no scope has evaluated; return the new
        revisions of incidents.

        The state advances only with the next `write`, so that a batch whose store was away can be repeated.
        """
        if not letters and not self._stored_state:
            return []
        now = datetime.now(UTC)
        events = [event_of_notice(notice_of(replace(letter, at=now)), self._scope) for letter in summed(letters)]
        unjudged = Quarantine(redactor_of(self._plan.redaction))  # its letters would be about letters: they are dropped
        self._next_state = dict(self._stored_state)
        findings = evaluate_own(events, [Tick(now)], own_rules(self._plan), self._scope, self._next_state, unjudged)
        return list(group(findings, self._plan, ledger, unjudged))

    def misdated_sentences(self, items: Iterable[BatchRow]) -> list[str]:
        """Return a sentence for each source whose misdated events are due to be reported: at first, and whenever there are
        REPORT_FACTOR times as many as at the last report."""
        sentences = []
        for item in items:
            if isinstance(item, Misdated):
                total = self._misdated_events[item.source_id] = self._misdated_events.get(item.source_id, 0) + item.events
                if total >= REPORT_FACTOR * self._reported.get(item.source_id, 0):
                    self._reported[item.source_id] = total
                    sentences.append(Misdated(item.source_id, total).sentence)
        return sentences

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Append the dead letters of a batch that is in the store to the file. Raises TocsinError when it cannot be written."""
        self._stored_state = self._next_state
        if not letters:
            return
        try:
            if self._path.exists() and self._path.stat().st_size > FILE_BYTES:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
                file.writelines(f"{dumps(letter)}\n" for letter in letters)
        except OSError as error:
            raise TocsinError(f"{self._path}: dead letters cannot be written ({error.strerror})") from error
