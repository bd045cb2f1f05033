"""What the tests of the parser share: the shipped formats, lines from text, and the whole way from bytes to events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from engine.model.records import LogEvent, RawLine
from engine.model.rules import Format
from engine.parse import assemble, decode, unwrap

FOLDER = Path(__file__).parents[3] / "rules" / "formats"


def documents() -> dict[str, dict[str, Any]]:
    """Return every file of rules/formats by its stem."""
    return {path.stem: yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) for path in sorted(FOLDER.glob("*.yml"))}


def _format(document: dict[str, Any]) -> Format:
    return Format(
        document["name"],
        document["header"],
        document.get("time", "iso"),
        document["rank"],
        document.get("labels", {}),
        tuple(document.get("carries", ())),
        document.get("level", ""),
    )


FORMATS = tuple(_format(document) for document in documents().values())


def lines(data: bytes | str, source_id: str = "server.log", taken: datetime | None = None, **labels: str) -> Iterator[RawLine]:
    """Yield the lines of a file's content, with their offsets and numbers, as they were read at `taken`."""
    offset = 0
    content = data.encode() if isinstance(data, str) else data
    for number, line in enumerate(content.split(b"\n"), 1):
        yield RawLine(source_id, offset, line, number, taken, labels)
        offset += len(line) + 1


def events(data: bytes | str, source_id: str = "server.log", taken: datetime | None = None, **labels: str) -> list[LogEvent]:
    """Return the events of a file's content."""
    records = unwrap(lines(data, source_id, taken, **labels), FORMATS)
    return [item for item in decode(assemble(records, FORMATS), FORMATS) if isinstance(item, LogEvent)]


def event(data: bytes | str, taken: datetime | None = None, **labels: str) -> LogEvent:
    """Return the only event of a file's content."""
    (only,) = events(data, taken=taken, **labels)
    return only
