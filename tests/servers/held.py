"""A source of type kafka that waits between the plan of a batch and its reading, as long as a file is there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connectors.kafka import reading
from connectors.kafka.source import KafkaSource
from engine.ports import Chunk

OPENER = "tests.servers.held:open_source"
HELD, READING = "held", "reading"  # files in the folder `gate`: hold on; somebody waits


class HeldSource(KafkaSource):
    """A KafkaSource with a gate before its reading; what comes through it begins with a consumer that has fetched nothing."""

    gate: Path

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        while (self.gate / HELD).exists():
            for key in list(reading._READERS):
                reading._READERS.pop(key).close()
            (self.gate / READING).touch()
            time.sleep(0.05)
        yield from super().chunks(slice_)


def open_source(settings: Mapping[str, Any]) -> HeldSource:
    """Return the source; its settings are those of a KafkaSource and `gate`."""
    made = HeldSource(**{name: value for name, value in settings.items() if name != "gate"})
    made.gate = Path(settings["gate"])
    return made
