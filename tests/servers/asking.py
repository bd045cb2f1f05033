"""A source that asks, driven by a test: it asks when the test says so, by its clock every half minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
        self._at, self._is_live = datetime.now(UTC) - timedelta(hours=12), False
        settings = {"connection": connection, "folder": str(folder / "answers"), "every_s": 30.0, "final": True}
        self._source = open_source({**settings, "labels": {}, "record": str(self.record)})
        self._source.wall = self._now
        self._source.latest(self._source.initial())

    def _now(self) -> datetime:
        self._at += timedelta(seconds=self.every_s)
        return datetime.now(UTC) if self._is_live else self._at

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

    def follow_the_clock(self) -> None:
        """Ask at the time that it is from now on."""
        self._is_live = True

    def scanned_with(self, logs: Sequence[Path]) -> list[Incident]:
        """Return the incidents of a scan of the record and of logs that are worse than medium, as they are at its end."""
        paths = [str(path) for path in (self.record, *logs)]
        incidents = {incident.id: incident for incident in replay(Intake(paths, {}).lines(), plan())}.values()
        return [incident for incident in incidents if incident.severity in ("high", "critical") and incident.status != "merged"]

    def until_scanned(self, logs: Sequence[Path], holds: Callable[[Incident], bool], within_s: float = 420) -> Incident:
        """Ask every few seconds until the record and logs give one incident, and it is as it is to be; return it."""
        deadline = time.monotonic() + within_s
        while not (len(incidents := self.scanned_with(logs)) == 1 and holds(incidents[0])):
            assert time.monotonic() < deadline, incidents
            for _ in range(5):
                self.round(must_answer=False)
                time.sleep(3)
        return incidents[0]

    def close(self) -> None:
        """Close the connections."""
        self._source.close()

    def incidents(self) -> list[Incident]:
        """Return the incidents of a scan of the record, as they are at its end."""
        return scanned(self.record)


def scanned(log: Path) -> list[Incident]:
    """Return the incidents of a scan of `log`, as they are at its end."""
    return list({incident.id: incident for incident in replay(Intake([str(log)], {}).lines(), plan())}.values())
