"""Finds out who wrote a record: the host and the file that a shipper's JSON document names. Pure.

A document stays one line: engine/parse/wrappers reads it as it reads it from anywhere else. Here only those fields are looked
at by which its lines find their source and labels (engine/shipping for the names).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import force_setattr

from engine.codec import foreign
from engine.shipping import FILE, HOST, document_type, first_text, named, source_name

_MOST = 4096  # authors and documents that are remembered
_LONGEST = 4096  # bytes of a document of which anything is remembered


class RecordAuthor(Struct, frozen=True, eq=False):
    """The host and file that a record names, and its values of the fields that labels ask for.

    The same object for the same values, as long as it is remembered. `host` and `file` are "" where the record names none; what
    is no document names neither.
    """

    host: str
    file: str
    fields: tuple[str | None, ...]

    @property
    def is_named(self) -> bool:
        """Whether the record names its source."""
        return bool(self.host or self.file)


class RecordReader:
    """Reads records, hundreds at a time.

    Args:
        fields: the names of the fields that labels ask for; a dotted name is also looked for step by step.
    """

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self._fields = fields
        self._nobody = _author("", "", (None,) * len(fields))
        self._decoder = msgspec.json.Decoder(document_type((*HOST, *FILE, *fields), plain=("log",)))
        self._remembered = lru_cache(_MOST)(lambda document: self._author_of(msgspec.to_builtins(document)))

    def read(self, values: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[RecordAuthor]]:
        """Return the lines of each record and its author. A document is one line. Never fails: what is no document is lines of
        nobody."""
        begins = {value[:1] for value in values}
        if b"{" not in begins:
            return values, [self._nobody] * len(values)
        if begins == {b"{"} and max(map(len, values)) <= _LONGEST and b"\n" not in b"".join(values):
            with suppress(ValueError, RecursionError):  # not all are documents, or one has other types of values than most
                return values, list(map(self._known_author, map(self._decoder.decode, values)))
        pairs = [self._one(value) if value.startswith(b"{") else (value, self._nobody) for value in values]
        return [value for value, _ in pairs], [author for _, author in pairs]

    def _one(self, value: bytes) -> tuple[bytes, RecordAuthor]:
        """Return the lines and the author of a record that may be no document, or holds other types of values than most."""
        if len(value) <= _LONGEST:
            with suppress(ValueError, RecursionError):
                return _in_one_line(value), self._known_author(self._decoder.decode(value))
        try:
            document = foreign(value.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return value, self._nobody
        if not isinstance(document, dict):
            return value, self._nobody
        return _in_one_line(value), self._author_of(document)

    def _known_author(self, document: Any) -> RecordAuthor:
        if isinstance(document.log, str) and "log" not in self._fields:
            force_setattr(document, "log", UNSET)  # the line itself (Fluent Bit, Docker), which names no source
        return self._remembered(document)

    def _author_of(self, document: Mapping[str, Any]) -> RecordAuthor:
        fields = tuple(first_text(document, (name,)) for name in self._fields)
        return _author(named(document, HOST), named(document, FILE), fields)


_author = lru_cache(_MOST)(RecordAuthor)


def stream_name(topic: str, partition: int, key: str, author: RecordAuthor) -> str:
    """Return the source_id of a record's lines; `#` is escaped because it names containers inside a stream (model/records)."""
    return source_name(topic, author.host, author.file, f"{topic}/{key}" if key else f"{topic}-{partition}")


def _in_one_line(value: bytes) -> bytes:
    """Return a document in one line: line ends stand between its tokens only."""
    if b"\n" in value or b"\r" in value:
        return value.replace(b"\n", b" ").replace(b"\r", b" ")
    return value
