"""A source of files that does not say what there is to read until somebody opens a pipe for writing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connectors.files.source import FilesSource
from engine.ports import Offset

OPENER = "tests.spark.hanging:open_source"


class HangingSource(FilesSource):
    """A FilesSource that hangs in its planning for as long as there is the pipe `hangs_on` and nobody writes to it."""

    hangs_on: Path

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        if self.hangs_on.exists():
            self.hangs_on.read_bytes()
        return super().latest(start, max_lines)


def open_source(settings: Mapping[str, Any]) -> HangingSource:
    """Return the source; its settings are those of a FilesSource and `hangs_on`."""
    source = HangingSource(**{name: value for name, value in settings.items() if name != "hangs_on"})
    source.hangs_on = Path(settings["hangs_on"])
    return source
