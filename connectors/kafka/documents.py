"""What records hold: lines as they are, or shippers' JSON documents around them. Pure.

What shippers call things is in engine/shipping. A document that also names a level or a logger was written by the program
itself: it says more than its message, so it stays as it is, for engine/parse to read.

Records are read hundreds at a time. What several hosts write lies mixed in a partition, and Filebeat writes the fields of every
document in another order: its encoder walks a Go map (go-structform, gotype/fold_map).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import force_setattr

from connectors.kafka.shapes import Lines, Shapes
from engine.codec import foreign
from engine.shipping import FILE, HOST, MESSAGE, document_type, first_text, named, source_name, value_at

_PROGRAM = ("level", "log.level", "logger", "log.logger", "logger_name", "stack_trace", "error.stack_trace")
_MOST = 4096  # of whom it is remembered what documents said
_LONGEST = 4096  # bytes of a document that is remembered


class Whose(Struct, frozen=True, eq=False):
    """Whose the lines of a record are; the same object for the same, as long as it is remembered.

    `host` and `file` are "" where it names none; what is no document with a message names neither. `asked` is what it says in
    the fields that were asked for.
    """

    host: str
    file: str
    by_program: bool
    asked: tuple[str | None, ...]

    @property
    def named(self) -> bool:
        """Whether the record names its source."""
        return bool(self.host or self.file)


class Documents:
    """Reads records, hundreds at a time.

    Args:
        fields: names of what is asked of each besides; a dotted name is also looked for step by step.
    """

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self._fields = fields
        self._nobody = _known("", "", False, (None,) * len(fields))
        self._decoder = msgspec.json.Decoder(document_type((*MESSAGE, *HOST, *FILE, *_PROGRAM, *fields), MESSAGE))
        self._alone = any(name in fields for name in MESSAGE)  # they are taken out before anything is asked
        self._remembered = lru_cache(_MOST)(lambda document: self._whose_of(msgspec.to_builtins(document)))
        self._shapes: Shapes[Whose] = Shapes()

    def cut(self, values: Sequence[bytes]) -> tuple[Lines, Whose] | None:
        """Return what `told` would tell of records, if these are documents of a shape that was told before."""
        return self._shapes.cut(values) if values[0].startswith(b"{") else None

    def told(self, values: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[Whose]]:
        """Return what each record holds, as it is or without what is around it, and whose it is. Never fails: what is no
        shipper's document is lines."""
        if b"{" not in [value[:1] for value in values]:
            return values, [self._nobody] * len(values)
        try:
            documents = self._decoded(values)
        except (ValueError, RecursionError):
            return _unpaired(map(self._told_alone, values))
        messages = list(map(_taken_out, documents))
        short = max(map(len, values)) <= _LONGEST  # nearly always
        whose = list(map(self._remembered, documents) if short else map(self._whose, documents, map(len, values)))
        if None in messages or any(who.by_program or not who.named for who in set(whose)):
            return _unpaired(map(_held, values, messages, whose))
        if whose.count(whose[0]) == len(whose):
            self._shapes.learn(values, whose[0])
        return [message.encode() for message in messages if message is not None], whose

    def _told_alone(self, value: bytes) -> tuple[bytes, Whose]:
        """Return what is told of a record that may be no document, or hold what is seldom there."""
        if not value.startswith(b"{"):
            return value, self._nobody
        try:
            (document,) = self._decoded([value])
        except (ValueError, RecursionError):
            whole = _document(value)
            return (value, self._nobody) if whole is None else _held(value, first_text(whole, MESSAGE), self._whose_of(whole))
        return _held(value, _taken_out(document), self._whose(document, len(value)))

    def _decoded(self, values: Sequence[bytes]) -> Sequence[Any]:
        """Return what documents hold of what may matter. Raises ValueError or RecursionError where one is none, or holds there
        what is seldom there."""
        if self._alone:
            raise ValueError("a message that was asked for cannot be taken out")
        b"".join(values).decode()  # what the decoder skips may be no UTF-8
        return list(map(self._decoder.decode, values))

    def _whose(self, document: Any, size: int) -> Whose:
        return self._remembered(document) if size <= _LONGEST else self._whose_of(msgspec.to_builtins(document))

    def _whose_of(self, document: Mapping[str, Any]) -> Whose:
        host, file = named(document, HOST), named(document, FILE)
        by_program = any(isinstance(value := value_at(document, name), str) and value for name in _PROGRAM)
        asked = tuple(first_text(document, (name,)) for name in self._fields)
        return _known(host, file, by_program, asked)


_known = lru_cache(_MOST)(Whose)


def stream_name(topic: str, partition: int, key: str, whose: Whose) -> str:
    """Return the source_id of a record's lines; `#` is escaped because it names containers inside a stream (model/records)."""
    return source_name(topic, whose.host, whose.file, f"{topic}/{key}" if key else f"{topic}-{partition}")


def _held(value: bytes, message: str | None, whose: Whose) -> tuple[bytes, Whose]:
    """Return what a document holds, and whose it is."""
    if message is None or not whose.named:
        return value, _known("", "", False, whose.asked)
    return value.replace(b"\n", b" ") if whose.by_program else message.encode(), whose


def _unpaired(told: Iterable[tuple[bytes, Whose]]) -> tuple[list[bytes], list[Whose]]:
    held, whose = zip(*told, strict=True)
    return list(held), list(whose)


def _taken_out(document: Any) -> str | None:
    """Return the message of a document, which is then without it; None where there is none."""
    for name in MESSAGE:
        message = getattr(document, name)
        if isinstance(message, str):
            force_setattr(document, name, UNSET)
            return message
    return None


def _document(value: bytes) -> Mapping[str, Any] | None:
    try:
        loaded = foreign(value)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None
