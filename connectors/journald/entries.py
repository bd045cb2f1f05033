"""Entries of a journal as `journalctl --output=json` prints them: their positions and sources. Pure.

Source: systemd, Journal Export Formats; systemd.journal-fields(7); Docker, journald logging driver (CONTAINER_NAME,
IMAGE_NAME), which Podman follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from engine.model.patterns import fits
from engine.model.records import Labels
from engine.ports import NO_INGEST_TIME, ingest_us

KERNEL = "kernel"  # used as the unit of the kernel's entries, which have none
# a repeated field is a list of its values, one that is not UTF-8 a list of its bytes
FieldValue = str | list[Any] | None


class CursorPlace(Struct, frozen=True):
    """The position of an entry according to its cursor: its number among the entries of one writer (a journald), and its time
    in microseconds since 1970. Source: systemd, sd-journal.c: sd_journal_get_cursor."""

    writer: str
    number: int
    at_us: int

    def is_before(self, other: CursorPlace) -> bool:
        """Return whether the entry precedes `other` in the journal."""
        return self.number < other.number if self.writer == other.writer else self.at_us < other.at_us


class JournalEntry(Struct, frozen=True):
    """The fields of an entry for its position, its source and its labels."""

    cursor: str = field(name="__CURSOR")
    realtime: str = field(name="__REALTIME_TIMESTAMP")
    message: Raw = field(name="MESSAGE", default=Raw())
    host: FieldValue = field(name="_HOSTNAME", default=None)
    unit: FieldValue = field(name="_SYSTEMD_UNIT", default=None)
    user_unit: FieldValue = field(name="_SYSTEMD_USER_UNIT", default=None)
    about: FieldValue = field(name="UNIT", default=None)
    about_user: FieldValue = field(name="USER_UNIT", default=None)
    identifier: FieldValue = field(name="SYSLOG_IDENTIFIER", default=None)
    transport: FieldValue = field(name="_TRANSPORT", default=None)
    container: FieldValue = field(name="CONTAINER_NAME", default=None)
    image: FieldValue = field(name="IMAGE_NAME", default=None)

    @property
    def has_text(self) -> bool:
        """Whether the entry has a message."""
        return bytes(self.message) not in (b"", b"null")

    @property
    def at(self) -> datetime | None:
        """When the journal received the entry; None when the field is no valid time."""
        try:
            return datetime.fromtimestamp(int(self.realtime) / 1_000_000, UTC)
        except (ValueError, OverflowError, OSError):
            return None

    @property
    def time_us(self) -> int:
        """When the journal received it, in microseconds since 1970; NO_INGEST_TIME when that is no time."""
        try:
            return ingest_us(int(self.realtime))
        except ValueError:
            return NO_INGEST_TIME

    @property
    def source_id(self) -> str:
        """The source of the line: `journald/<host>:<container or unit>`, of the one that printed it."""
        printer = _text(self.container) or self._printed_by or _text(self.identifier)
        name = ":".join(filter(None, (_text(self.host), printer or "journal")))
        return f"journald/{name}".replace("#", "%23")

    @property
    def labels(self) -> Labels:
        """The labels of the line: the host, unit, container and image that printed it."""
        values = {
            "host": _text(self.host),
            "unit": self._printed_by,
            "container": _text(self.container),
            "image": _text(self.image),
        }
        return {name: value for name, value in values.items() if value}

    def is_selected(self, selection: Mapping[str, Sequence[str]]) -> bool:
        """Return whether the patterns of at least one label of `selection` fit.

        Those of `unit` apply to the unit that printed the entry, or that the entry of systemd is about; those of `container` to
        its container. An empty selection selects every entry.
        """
        units = [self._printed_by, _text(self.user_unit), _text(self.about), _text(self.about_user)]
        names = {"unit": units, "container": [_text(self.container)]}
        return not selection or any(
            fits(list(filter(None, names.get(label, []))), _with_suffix(label, tuple(patterns)))
            for label, patterns in selection.items()
        )

    @property
    def _printed_by(self) -> str:
        return KERNEL if self.transport == KERNEL else _text(self.unit) or _text(self.user_unit)


_DECODER = msgspec.json.Decoder(JournalEntry)
FIELDS = tuple(
    name for attribute in msgspec.structs.fields(JournalEntry) if not (name := attribute.encode_name).startswith("__")
)


def entry_of(row: bytes) -> JournalEntry | None:
    """Return the entry of a row of journalctl; None when the row is not an entry, such as a row cut off when journalctl
    ended."""
    try:
        return _DECODER.decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=1024)
def place_of(cursor: str) -> CursorPlace | None:
    """Return the position in `cursor`; None when the cursor has another form."""
    parts = dict(part.split("=", 1) for part in cursor.split(";") if "=" in part)
    try:
        return CursorPlace(parts["s"], int(parts["i"], 16), int(parts["t"], 16))
    except (KeyError, ValueError):
        return None


@lru_cache(maxsize=64)
def _with_suffix(label: str, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return `patterns`; for units also those of services with a short name: `kafka` also stands for `kafka.service`."""
    if label != "unit":
        return patterns
    return (*patterns, *(f"{pattern}.service" for pattern in patterns if "." not in pattern))


def _text(value: FieldValue) -> str:
    """Return a field as text: the first of several values, "" when it is missing."""
    if isinstance(value, list):
        first = next(iter(value), "")
        value = first if isinstance(first, str) else ""
    return value or ""
