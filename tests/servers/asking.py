"""A source that asks, driven by a test: it asks when the test says so, by its clock every half minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.asking import AskingSource
from engine.cli.intake import Intake
from engine.model.incidents import Incident
from engine.pipeline import replay
from tests.rulepack.playing import plan

WITHIN_S = 120


class Asking:
    """Asks what `open_source` opens. All its rounds are in the past, as stamps in the future are not believed."""

    def __init__(self, open_source: Callable[[Mapping[str, Any]], AskingSource[Any]], folder: Path, **connection: Any) -> None:
        self.record, self.every_s = folder / "asked.log", 30
        self._at = datetime.now(UTC) - timedelta(hours=12)
        settings = {"connection": connection, "folder": str(folder / "answers"), "every_s": 30.0, "final": True}
        self._source = open_source({**settings, "labels": {}, "record": str(self.record)})
        self._source.wall = self._now
        self._source.latest(self._source.initial())

    def _now(self) -> datetime:
        self._at += timedelta(seconds=self.every_s)
        return self._at

    def round(self, must_answer: bool = True) -> str:
        """Ask once; return what was told: nothing without an answer."""
        before = self.record.stat().st_size
        rounds = self._source._rounds
        assert rounds is not None
        rounds.ask(0)
        assert rounds.failure is None or not must_answer, rounds.failure
        return self.record.read_text()[before:]

    def until(self, words: str, must_answer: bool = True) -> None:
        """Ask until `words` are told."""
        deadline = time.monotonic() + WITHIN_S
        while words not in self.round(must_answer):
            assert time.monotonic() < deadline, self.record.read_text()
            time.sleep(0.2)

    def close(self) -> None:
        """Close the connections."""
        self._source.close()

    def incidents(self) -> list[Incident]:
        """Return the incidents of a scan of the record, as they are at its end."""
        return scanned(self.record)


def scanned(log: Path) -> list[Incident]:
    """Return the incidents of a scan of `log`, as they are at its end."""
    return list({incident.id: incident for incident in replay(Intake([str(log)], {}).lines(), plan())}.values())
