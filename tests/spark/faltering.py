"""A source of files whose slices are away the first times that they are read, although it can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.files.source import FilesSource
from engine.errors import SourceAway
from engine.ports import Chunk

OPENER = "tests.spark.faltering:open_source"


class FalteringSource(FilesSource):
    """A FilesSource that fails as often as the file `failures` says, which is counted down."""

    failures: Path

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        left = int(self.failures.read_text())
        chunks = super().chunks(slice_)
        if left:
            self.failures.write_text(str(left - 1))
            yield next(chunks)  # some of it has come already
            raise SourceAway("the disk", "the disk is away")
        yield from chunks


def open_source(settings: Mapping[str, Any]) -> FalteringSource:
    """Return the source; its settings are those of a FilesSource and `failures`."""
    made = FalteringSource(**{name: value for name, value in settings.items() if name != "failures"})
    made.failures = Path(settings["failures"])
    return made
