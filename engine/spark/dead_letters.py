"""What the driver does with what was put aside: dead letters in a file beside the checkpoint, what the rules about tocsin
say of those that only the driver has come upon, and how often stamps were out of bounds."""

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
from engine.spark.own import event, judged, notice_of
from engine.spark.rows import BatchRow
from engine.spark.slices import own_rules

FILE_BYTES = 4 << 20  # of dead letters; what is older is in a second file of as much
FOLD = 10  # times as many misdated events as when that was told last are told again


def file_of(checkpoint: Path) -> Path:
    """Return where dead letters are written, one as JSON a line; older ones are in `.1` beside it."""
    return checkpoint / "quarantine.jsonl"


class DeadLetterFile:
    """Of one run of a job: its plan, its checkpoint, and the scope under which is told what has none of its own."""

    def __init__(self, plan: Plan, checkpoint: Path, scope: str) -> None:
        self._plan, self._path, self._scope = plan, file_of(checkpoint), scope
        self._known: dict[str, str] = {}
        self._judged: dict[str, str] = {}
        self._misdated: dict[str, int] = {}
        self._told: dict[str, int] = {}

    def judged(self, letters: Sequence[DeadLetter], ledger: Ledger) -> list[Incident]:
        """Return the revisions of incidents about dead letters that no scope has told of: those of grouping. What is known by
        it is kept by `write`: until then it can be done again, as a batch is whose store was away."""
        if not letters and not self._known:
            return []
        now = datetime.now(UTC)
        said = [event(notice_of(replace(each, at=now)), self._scope) for each in summed(letters)]
        unjudged = Quarantine(
            redactor_of(self._plan.redaction)
        )  # what the rules about tocsin fail on is told as the letters themselves are
        self._judged = dict(self._known)
        findings = judged(said, [Tick(now)], own_rules(self._plan), self._scope, self._judged, unjudged)
        return list(group(findings, self._plan, ledger, unjudged))

    def misdated(self, items: Iterable[BatchRow]) -> list[str]:
        """Return what is to be said of stamps that are out of bounds: the first time, and when there are FOLD times as many."""
        said = []
        for each in items:
            if isinstance(each, Misdated):
                total = self._misdated[each.source_id] = self._misdated.get(each.source_id, 0) + each.events
                if total >= FOLD * self._told.get(each.source_id, 0):
                    self._told[each.source_id] = total
                    said.append(Misdated(each.source_id, total).sentence)
        return said

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Append the dead letters of a batch that is in the store to the file. Raises TocsinError when it cannot be written."""
        self._known = self._judged
        if not letters:
            return
        try:
            if self._path.exists() and self._path.stat().st_size > FILE_BYTES:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
                file.writelines(f"{dumps(each)}\n" for each in letters)
        except OSError as error:
            raise TocsinError(f"{self._path}: dead letters cannot be written ({error.strerror})") from error
