"""Takes messages out of JSON documents, one a line: docker's rows, and the documents of programs and shippers.

The keys are those of engine/parse/wrappers. The parser reads a document that Arrow cannot read, and one with more keys that
matter than message, stamp, level, logger, thread, labels and a trace (a reason that the trace has not, a group).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow import json as arrow_json

from engine.codec import foreign
from engine.columns.layouts import matching
from engine.columns.lines import (
    MISDATED,
    NO_TIME,
    UNDATED,
    Flags,
    Integers,
    flags_of,
    index_of,
    mask_of,
    numbers_of,
    texts_of,
    with_behind,
)
from engine.columns.stamps import FROM_MILLIS, offsets_of
from engine.model.records import Labels
from engine.parse.wrappers import docker_json
from engine.parse.wrappers import structured_json as structured

PART = 1024  # documents that are read together; one that Arrow does not read leaves as many to the parser
MOST_KEYS = 256  # of a schema
MOST_SCHEMAS = 8

_NULL = r'"\s*:\s*null'  # behind a key; a text such as `rack: null` has no quote there
_ENDS_BLANK = r"[\s\x{85}\x{a0}\x{1680}\x{2000}-\x{3000}]\z"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}]"
_DOCKER, _WITH_DOCKER = frozenset(docker_json._KEYS), frozenset(docker_json._KEYS | docker_json._OTHER_KEYS)
_OTHERS = frozenset(("MESSAGE", "__REALTIME_TIMESTAMP", *structured._INSIDE))
_COUNTING = frozenset(
    (
        *structured._GROUP,
        *structured._BROKER,
        *structured._CONNECT,
        structured._ANSWER_CODE,
        "partition",
    )
)
_NUMBERS = (int, float)
_Columns = Mapping[str, pa.Array]
ReadStamps = Callable[[Integers, pa.Array, str], Integers]  # of documents, by number: stamps in a layout as times (StampReader)


class Documents(Struct, frozen=True):
    """The messages of documents, with their stamps, fields and labels. `rows` are the numbers of the texts, in the same order.

    `fields` and `labels` are indexes in `field_sets` and `label_sets`, whose first sets are empty. A document with fields is a
    whole event. `partial`: docker split the line here.
    """

    rows: Integers
    texts: pa.StringArray
    at_us: Integers
    fields: Integers
    labels: Integers
    partial: Flags
    field_sets: Sequence[Labels]
    label_sets: Sequence[Labels]


class DocumentColumns:
    """Reads documents. It remembers which keys there were, of which type.

    A table has one type for each key, and shippers use the same key for different things (`log` is a line of Fluent Bit and
    Docker, and an object of Filebeat). So there are several schemas, and every document is read by one that it fits.
    """

    def __init__(self) -> None:
        self._schemas: list[dict[str, Any]] = []  # the one that was used last comes first

    def read(self, texts: pa.StringArray, stamps: ReadStamps) -> Documents | None:
        """Return the documents among `texts` that columns can read; None when there are none."""
        rows = np.flatnonzero(_whole(texts))
        made = _Made()
        for begin in range(0, len(rows), PART):
            part_rows = rows[begin : begin + PART]
            for numbers, part, table in self._tables(texts.take(index_of(part_rows))):
                leaves = list(_leaves(table))
                columns = dict(leaves)  # one name in two places is left to the parser
                if len(columns) == len(leaves) and _OTHERS.isdisjoint(name.partition(".")[0] for name in columns):
                    for alike in _by_keys(columns, len(numbers)):
                        own = columns
                        if len(alike) < len(numbers):
                            own = {name: column.take(index_of(alike)) for name, column in columns.items()}
                        made.take(part_rows[numbers[alike]], own, stamps, partial(_whole_numbers, part, alike))
        return made.documents()

    def _tables(self, texts: pa.StringArray) -> Iterator[tuple[Integers, pa.StringArray, pa.Table]]:
        """Yield tables of documents: their numbers, ascending, their texts, and the table. What is no document, or none that
        Arrow reads, is in none."""
        for at, schema in enumerate(self._schemas):
            if (table := _read(texts, schema)) is not None:
                self._schemas.insert(0, self._schemas.pop(at))
                yield np.arange(len(texts)), texts, table
                return
        numbers_of_schemas = self._sorted(texts)
        for schema, numbers in zip(self._schemas, numbers_of_schemas, strict=True):
            if numbers:
                rows = np.array(numbers, np.int64)
                part = texts.take(index_of(rows))
                if (table := _read(part, schema)) is not None:
                    yield rows, part, table
        if len(self._schemas) > MOST_SCHEMAS:  # begin anew: those that still occur are learnt again
            self._schemas = []

    def _sorted(self, texts: pa.StringArray) -> Sequence[Sequence[int]]:
        """Return, for each schema, the numbers of the documents that it fits; keys that are new are added to it, and documents
        that fit none get another one."""
        numbers: list[list[int]] = [[] for _ in self._schemas]
        for number, text in enumerate(texts.to_pylist()):
            try:
                document = foreign(text)
            except (ValueError, RecursionError):
                continue
            if not isinstance(document, dict) or not _is_readable(document) or _size(document) > MOST_KEYS:
                continue
            at = next((at for at, schema in enumerate(self._schemas) if _fits(document, schema)), len(self._schemas))
            if at > MOST_SCHEMAS:
                continue
            if at == len(self._schemas):
                self._schemas.append({})
                numbers.append([])
            _note(document, self._schemas[at])
            numbers[at].append(number)
        return numbers


def _whole(texts: pa.StringArray) -> Flags:
    """Return which texts are one line from the first key to the end of a document, and have no `null` for a value."""
    whole: Flags = flags_of(pc.starts_with(texts, '{"')) & flags_of(pc.ends_with(texts, "}")) & ~matching(texts, r"\n")
    nulls = np.flatnonzero(matching(texts, "null"))  # RE2 finds a plain word in a fraction of the time
    if len(nulls):
        whole[nulls] &= ~matching(texts.take(index_of(nulls)), _NULL)
    return whole


def _read(texts: pa.StringArray, schema: Mapping[str, Any]) -> pa.Table | None:
    """Return documents as a table; None when one of them has a key of another type or a new one, or is no document."""
    _, data = offsets_of(with_behind(texts, "\n"))
    arrow_schema = pa.schema([(name, _arrow(kind)) for name, kind in schema.items()])
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1024)),
            parse_options=arrow_json.ParseOptions(explicit_schema=arrow_schema, unexpected_field_behavior="error"),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError, pa.ArrowNotImplementedError):
        return None
    return table.combine_chunks() if table.num_rows == len(texts) else None


def _arrow(kind: Any) -> pa.DataType:
    if isinstance(kind, dict):
        return pa.struct([(name, _arrow(inner)) for name, inner in kind.items()])
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), list: pa.list_(pa.string())}[kind]


def _is_readable(value: Any) -> bool:
    """Return whether Arrow reads a value of a document: lists are of texts, numbers finite and of 64 bits."""
    if isinstance(value, dict):
        return all(map(_is_readable, value.values()))
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))


def _fits(document: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Return whether a schema has the keys of a document with the same types, or room for those that it has not."""
    news = _new_keys(document, schema)
    return news == 0 or (news is not None and _size(schema) + news <= MOST_KEYS)


def _new_keys(document: Mapping[str, Any], schema: Mapping[str, Any]) -> int | None:
    """Return how many keys of a document a schema has not; None when it has one with another type."""
    count = 0
    for name, value in document.items():
        kind = schema.get(name)
        if kind is None:
            count += _size(value) if isinstance(value, dict) else 1
        elif isinstance(kind, dict) and isinstance(value, dict):
            news = _new_keys(value, kind)
            if news is None:
                return None
            count += news
        elif kind is not type(value) and (kind not in _NUMBERS or type(value) not in _NUMBERS):
            return None
    return count


def _note(document: Mapping[str, Any], schema: dict[str, Any]) -> None:
    """Add the keys of a document to a schema that it fits."""
    for name, value in document.items():
        if isinstance(value, dict):
            _note(value, schema.setdefault(name, {}))
        elif schema.setdefault(name, type(value)) is int and isinstance(value, float):
            schema[name] = float


def _size(document: Mapping[str, Any]) -> int:
    """Return how many keys a document or schema has, those of nested ones instead of these."""
    return sum(_size(value) if isinstance(value, dict) else 1 for value in document.values())


def _leaves(table: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns by name, those of nested documents under dotted names as far down as the parser goes."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield from _flat(name, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column, structured.DEPTH)


def _flat(name: str, column: pa.Array, depth: int) -> Iterator[tuple[str, pa.Array]]:
    if not pa.types.is_struct(column.type):
        yield name, column
    elif depth:
        for field in column.type:
            yield from _flat(f"{name}.{field.name}", pc.struct_field(column, field.name), depth - 1)


def _by_keys(columns: _Columns, count: int) -> Iterator[Integers]:
    """Yield the numbers of the documents that have the same keys."""
    held = [flags_of(column.is_valid()) for column in columns.values() if column.null_count]
    if not held:
        yield np.arange(count)
        return
    packed = np.packbits(np.array(held, np.bool_), axis=0).T
    _, which = np.unique(packed, axis=0, return_inverse=True)
    for kind in range(int(which.max()) + 1):
        yield np.flatnonzero(which.ravel() == kind)


class _Made:
    """What was taken out so far."""

    def __init__(self) -> None:
        self._parts: list[tuple[Integers, pa.StringArray, Integers, Integers, Integers, Flags]] = []
        self._fields: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        self._labels: dict[tuple[tuple[str, str], ...], int] = {(): 0}

    def take(self, rows: Integers, columns: _Columns, stamps: ReadStamps, whole_numbers: Callable[[Integers], Flags]) -> None:
        """Take documents that have the same keys. `whole_numbers`: see `_whole_numbers`."""
        own = {name: column for name, column in columns.items() if column.null_count < len(rows)}
        texts = {name: column for name, column in own.items() if pa.types.is_string(column.type)}
        keys = {name.partition(".")[0] for name in own}
        if _DOCKER <= keys <= _WITH_DOCKER and "log" in texts and "time" in texts:
            self._docker(rows, texts, stamps)
        elif _COUNTING.isdisjoint(own) and _is_explained(own.keys(), texts.keys()):
            self._structured(rows, own, texts, _times(rows, own, stamps, whole_numbers))

    def documents(self) -> Documents | None:
        """Return all documents that were added; None when there are none."""
        if not self._parts:
            return None
        rows, texts, at_us, fields, labels, partial = zip(*self._parts, strict=True)
        sets = [dict(kind) for kind in self._fields], [dict(kind) for kind in self._labels]
        return Documents(
            np.concatenate(rows),
            pa.concat_arrays(texts),
            np.concatenate(at_us),
            np.concatenate(fields),
            np.concatenate(labels),
            np.concatenate(partial),
            *sets,
        )

    def _docker(self, rows: Integers, texts: _Columns, stamps: ReadStamps) -> None:
        line, at_us = texts["log"], stamps(rows, texts["time"], "iso")
        nothing = np.zeros(len(rows), np.int64)
        partial = ~flags_of(pc.ends_with(line, "\n"))
        text = pc.ascii_rtrim(line, "\r\n")
        sure = (at_us != NO_TIME) & (at_us != UNDATED) & ~matching(text, rf"{_CONTROL}|\n")
        self._add(sure, rows, text, at_us, nothing, nothing, partial)

    def _structured(self, rows: Integers, own: _Columns, texts: _Columns, at_us: Integers) -> None:
        key = next((name for name in structured._TEXT if name in texts), None)
        if key is None:
            return
        sure = np.ones(len(rows), np.bool_)
        for column in texts.values():
            sure &= numbers_of(pc.binary_length(column)) > 0
        message = texts[key]
        sure &= ~matching(message, _CONTROL) & ~matching(message, _ENDS_BLANK)
        trace = next((name for name in structured._TRACE if name in texts), None)
        if trace is not None:
            reason = next((texts[name] for name in structured._REASON if name in texts), None)
            message, sure_traces = _with_traces(message, texts[trace], reason)
            sure &= sure_traces
        field_columns = _fields(own, texts)
        fields = self._codes(field_columns, self._fields, len(rows))
        if "level" in field_columns and "logger" not in field_columns and not all(field_columns["level"]):
            sure &= np.array([bool(level) for level in field_columns["level"]])
        labels = self._codes(_labels(texts), self._labels, len(rows))
        sure &= at_us != NO_TIME
        self._add(sure, rows, message, at_us, fields, labels, np.zeros(len(rows), np.bool_))

    def _codes(
        self, columns: Mapping[str, Sequence[str]], code_of: dict[tuple[tuple[str, str], ...], int], count: int
    ) -> Integers:
        """Return a code for each row of named values, equal for rows with equal values. Empty values are left out."""
        if not columns:
            return np.zeros(count, np.int64)
        kinds: dict[tuple[str, ...], int] = {}
        names = tuple(columns)
        codes = []
        for values in zip(*columns.values(), strict=True):
            code = kinds.get(values)
            if code is None:
                pairs = tuple((name, value) for name, value in zip(names, values, strict=True) if value)
                code = kinds[values] = code_of.setdefault(pairs, len(code_of))
            codes.append(code)
        return np.array(codes, np.int64)

    def _add(self, sure: Flags, rows: Integers, texts: pa.StringArray, *others: Any) -> None:
        if sure.any():
            at_us, fields, labels, partial = (column[sure] for column in others)
            self._parts.append((rows[sure], texts.filter(mask_of(sure)), at_us, fields, labels, partial))


def _is_explained(keys: Set[str], texts: Set[str]) -> bool:
    """Return whether documents with some keys, of which `texts` have texts, have no explanation of an error or one trace."""
    explaining = structured._EXPLAINING & keys
    if not explaining:
        return not any(map(structured._is_cause, texts))
    return explaining <= texts and sum(key in structured._TRACE for key in explaining) == 1


def _with_traces(messages: pa.StringArray, traces: pa.StringArray, reasons: pa.StringArray | None) -> tuple[pa.Array, Flags]:
    """Return messages with the trace of each below it, and which ones are as the parser makes them: of those others the message
    has the trace in it, or the trace has not the reason."""
    traces = pc.ascii_rtrim_whitespace(traces)
    sure = ~matching(traces, _CONTROL) & ~matching(traces, _ENDS_BLANK) & ~matching(traces, r"\A(?:: |\z)")
    columns = (messages.to_pylist(), traces.to_pylist(), [""] * len(traces) if reasons is None else reasons.to_pylist())
    sure &= [
        trace not in message and (reason in trace or reason in message) for message, trace, reason in zip(*columns, strict=True)
    ]
    return pc.binary_join_element_wise(messages, traces, *texts_of(["\n"])), sure


def _fields(own: _Columns, texts: _Columns) -> Mapping[str, Sequence[str]]:
    """Return level, logger and thread as the parser reads them; none of an envelope, which names neither level nor logger."""
    fields: dict[str, Sequence[str]] = {}
    for name, keys in structured._FIELDS.items():
        key = next((key for key in keys if key in texts), None)
        if key is not None:
            fields[name] = texts[key].to_pylist()
    numbered = _numbered(own)
    if numbered is not None:
        fields["level"] = (
            numbered if "level" not in fields else [n or t for n, t in zip(numbered, fields["level"], strict=True)]
        )
    if "level" in fields and "logger" not in fields and "name" in texts:
        fields["logger"] = texts["name"].to_pylist()
    if "logger" in fields:
        return fields
    return fields if "level" in fields else {}


def _numbered(own: _Columns) -> Sequence[str] | None:
    """Return the level of documents that number it or have a letter for it, None when none does."""
    key = next((key for key in ("level", "s") if key in own), None)
    if key is None:
        return None
    values = own[key].to_pylist()
    names = own["_level_name"].to_pylist() if "_level_name" in own else [""] * len(values)
    known = {(v, n): structured._level({"level": v, "_level_name": n}) for v, n in set(zip(values, names, strict=True))}
    levels = [known[each] for each in zip(values, names, strict=True)]
    return levels if any(levels) else None


def _labels(texts: _Columns) -> Mapping[str, Sequence[str]]:
    found = {}
    for name, keys in structured._LABELS.items():
        key = next((key for key in keys if key in texts), None)
        if key is not None:
            found[name] = texts[key].to_pylist()
    return found


def _times(rows: Integers, own: _Columns, stamps: ReadStamps, whole_numbers: Callable[[Integers], Flags]) -> Integers:
    """Return the first valid stamp of each document; MISDATED where none is within bounds, UNDATED where there is none, NO_TIME
    where the parser has to be asked."""
    at_us = np.full(len(rows), UNDATED, np.int64)
    for key in structured._TIME:
        left = np.flatnonzero((at_us == UNDATED) | (at_us == MISDATED))
        if not len(left):
            break
        if key in own:
            read = _read_stamps(rows[left], own[key].take(index_of(left)), stamps, partial(whole_numbers, left))
            at_us[left] = np.where(read == UNDATED, at_us[left], read)
    return at_us


def _read_stamps(rows: Integers, column: pa.Array, stamps: ReadStamps, whole_numbers: Callable[[], Flags]) -> Integers:
    """Return the times of the values under one key."""
    if pa.types.is_floating(column.type):
        at_us = stamps(rows, column, "epoch_ms")
        usual = flags_of(pc.and_(pc.greater_equal(column, 0.0), pc.less(column, float(FROM_MILLIS))))
        if not usual.all():
            at_us[~usual & whole_numbers()] = NO_TIME
        at_us[~flags_of(pc.is_finite(column))] = NO_TIME
        return at_us
    if pa.types.is_integer(column.type):
        return stamps(rows, column, "epoch_ms")
    if not pa.types.is_string(column.type):
        return np.full(len(rows), UNDATED, np.int64)
    at_us = stamps(rows, column, "iso")
    numeric = np.flatnonzero(matching(column, r"^[1-9][0-9]{0,17}$"))
    if len(numeric):
        at_us[numeric] = stamps(rows[numeric], pc.cast(column.take(index_of(numeric)), pa.int64()), "epoch_ms")
    at_us[matching(column, r"^(?:0[0-9]*|[0-9]{19,})$")] = NO_TIME
    return at_us


def _whole_numbers(texts: pa.StringArray, rows: Integers, some: Integers) -> Flags:
    """Return which of some documents, `rows` of `texts`, hold a whole number that the parser would read otherwise than as a
    float: a negative or a long one. In a column of floats the two look alike."""
    return matching(texts.take(index_of(rows[some])), r":\s*(?:-\d+|\d{11,})\s*[,}]")
