"""records: lines with their wrappers off, source by source; what no column takes off, the parser does line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.documents import DocumentColumns, Documents
from engine.columns.layouts import Layouts, Recogniser, matching
from engine.columns.lines import (
    MISDATED,
    NO_TIME,
    UNDATED,
    Flags,
    Integers,
    Lines,
    index_of,
    mask_of,
    numbers_of,
    strings,
    texts_of,
    with_behind,
)
from engine.columns.stamps import offsets_of, read_stamps, to_datetime, to_us
from engine.columns.wrapping import OUTERMOST, PREFIXES, Prefix, sign
from engine.model.records import NO_LABELS, Labels, Record
from engine.parse import wrappers
from engine.parse.continuation import opens_document
from engine.parse.unwrapping import NESTING
from engine.parse.wrappers import by_first_character

PROBED = 16  # documents of a block that the parser reads too
DOCUMENT = r'^\{"'
_ASCII = r"^[\x00-\x7f]*$"


class RecordRows(Struct, frozen=True, dict=True):
    """Lines without wrappers, all of one source together and in order.

    `data` holds the text of each with a line end behind it, row i from `starts[i]` on. `line` is which line of `lines` it is,
    `source` and `labelled` whose it is and which labels it bears, `at_us` the stamp of its wrapper (UNDATED without). An `odd`
    row may be anything but a line of its program. One that has `fields` (a code other than 0) is a whole event, of whose level,
    logger and thread its wrapper speaks.
    """

    lines: Lines
    data: bytes
    starts: Integers
    line: Integers
    source: Integers
    sources: Sequence[str]
    labelled: Integers
    labels: Sequence[Labels]
    at_us: Integers
    odd: Flags
    fields: Integers
    field_sets: Sequence[Labels]
    read: Callable[[int], Record]

    def __len__(self) -> int:
        return len(self.line)

    def record(self, row: int) -> Record:
        """Return what the parser makes of a row."""
        return self.read(int(self.line[row]))

    def text(self, row: int) -> str:
        """Return the text of a row, which may end in a line end of its own where a document holds an empty stack trace."""
        return self.data[int(self.starts[row]) : int(self.starts[row + 1]) - 1].decode()

    @cached_property
    def texts(self) -> pa.StringArray:
        """The text of each row, without its line end."""
        return without_ends(self.data, self.starts)


class Unwrapper:
    """Takes wrappers off blocks of lines. Prefixes that were met are looked for before layouts are."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._documents = DocumentColumns()
        self._met: set[str] = set()

    def rows(self, lines: Lines, read: Callable[[int], Record]) -> tuple[RecordRows, Layouts]:
        """Return `lines` without wrappers, and the layout of each row.

        Args:
            read: the parser: returns the record of a line.
        """
        texts = without_ends(lines.data, lines.starts)
        peeling = _Peeling(lines, read, self._recogniser, self._documents)
        numbers = np.arange(len(lines))
        prefixed = self._prefixed(texts)
        if prefixed.any():
            peeling.go_on(numbers[~prefixed], texts.filter(mask_of(~prefixed)))
            peeling.add(numbers[prefixed], texts.filter(mask_of(prefixed)))
        else:
            peeling.go_on(numbers, texts)
        if not peeling.left:
            return peeling.unchanged(), peeling.layouts()
        rows, layouts = peeling.rows()
        self._met |= peeling.met
        return rows, layouts

    def _prefixed(self, texts: pa.StringArray) -> Flags:
        """Return which lines bear a prefix that was met."""
        met = [prefix.fits for prefix in PREFIXES if prefix.name in self._met]
        met += [DOCUMENT] if DOCUMENT in self._met else []
        if not met:
            return np.zeros(len(texts), np.bool_)
        fits = matching(texts, "|".join(met))
        some = np.flatnonzero(fits)
        if len(some):
            fits[some] = ~self._recogniser.knows(texts.take(index_of(some)))
        return fits


def may_bear(texts: pa.StringArray, inside: bool) -> Flags:
    """Return which texts, in no layout of their own, may bear a wrapper; signs are for ASCII."""
    signed: Flags = matching(texts, sign(inside)) | (~matching(texts, _ASCII) & ~matching(texts, r"^\t"))
    return signed


def without_ends(data: bytes, starts: Integers) -> pa.StringArray:
    """Return the texts of rows without their line ends."""
    return pc.ascii_rtrim(strings(data, starts), "\n")


class _Some(Struct, frozen=True):
    """Some lines that bear no wrapper any more: their numbers, texts and layouts."""

    rows: Integers
    texts: pa.StringArray
    layouts: Layouts


class _Peeling:
    """The lines of a block while they lose their wrappers, from the outermost inwards.

    Attributes:
        left: how many lines may bear another wrapper.
        met: the prefixes that came off.
    """

    def __init__(self, lines: Lines, read: Callable[[int], Record], recogniser: Recogniser, documents: DocumentColumns) -> None:
        count = len(lines)
        self._lines, self._read, self._recogniser, self._documents = lines, read, recogniser, documents
        self._sources: dict[str, int] = {}
        self._labels: list[Labels] = []
        self._label_codes: dict[tuple[tuple[str, str], ...], int] = {}
        codes = [self._codes(chunk.source_id, chunk.labels) for chunk in lines.chunks]
        self._source, self._labelled = np.repeat(np.array(codes, np.int64).reshape(-1, 2), lines.per_chunk, axis=0).T.copy()
        self._outer = len(self._sources)  # sources with a lower code than this are of chunks, others of containers
        self._at_us = np.full(count, UNDATED, np.int64)
        self._odd = np.zeros(count, np.bool_)
        self._fields = np.zeros(count, np.int64)
        self._field_sets: list[Labels] = [NO_LABELS]
        self._field_codes_of: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        self._done: list[_Some] = []
        self._live, self._texts = np.zeros(0, np.int64), texts_of([])
        self.met: set[str] = set()

    @property
    def left(self) -> int:
        return len(self._live)

    def layouts(self) -> Layouts:
        """Return the layouts of lines that all went on as they are."""
        return self._done[0].layouts

    def unchanged(self) -> RecordRows:
        """Return lines that all went on as they are."""
        return self._rows(self._lines.data, self._lines.starts, np.arange(len(self._lines)), self._odd)

    def add(self, rows: Integers, texts: pa.StringArray) -> None:
        """Take lines that bear another wrapper."""
        self._live = np.concatenate((self._live, rows))
        self._texts = pa.concat_arrays([self._texts, texts])

    def rows(self) -> tuple[RecordRows, Layouts]:
        """Take off what is around all lines; return them, and their layouts."""
        for _ in range(NESTING):
            if not self.left:
                break
            self._step()
        self._by_parser(self._live, self._texts)
        return self._sorted()

    def go_on(self, rows: Integers, texts: pa.StringArray) -> None:
        """Take lines of which some may bear another wrapper: a line in a layout of its own bears none."""
        layouts = self._recogniser.layouts(texts)
        more = (layouts < 0) | (layouts >= self._recogniser.generic)
        outer = self._source[rows] < self._outer
        for some, inside in ((np.flatnonzero(more & outer), False), (np.flatnonzero(more & ~outer), True)):
            if len(some):
                more[some] = may_bear(texts.take(index_of(some)), inside)
        strange = self._strange(rows, texts, layouts, more)
        if strange.any():
            self._by_parser(rows[strange], texts.filter(mask_of(strange)))
            rows, texts, layouts, more = rows[~strange], texts.filter(mask_of(~strange)), layouts[~strange], more[~strange]
        if not more.any():
            self._done.append(_Some(rows, texts, layouts))
            return
        self._done.append(_Some(rows[~more], texts.filter(mask_of(~more)), layouts[~more]))
        self.add(rows[more], texts.filter(mask_of(more)))

    def _step(self) -> None:
        """Take one wrapper off each line that is left; what bears none that is known to columns goes to the parser."""
        peeled = [self._take_apart()]
        for prefix in PREFIXES:
            if not len(self._live):
                break
            fits = matching(self._texts, prefix.fits)
            if prefix.name in OUTERMOST:
                fits &= self._source[self._live] < self._outer
            if not fits.any():
                continue
            rows, texts = self._live[fits], self._texts.filter(mask_of(fits))
            self._live, self._texts = self._live[~fits], self._texts.filter(mask_of(~fits))
            self.met.add(prefix.name)
            doubted = matching(texts, sign(inside=False, before=prefix.name))
            self._by_parser(rows[doubted], texts.filter(mask_of(doubted)))
            peeled.append(self._take_off(prefix, rows[~doubted], texts.filter(mask_of(~doubted))))
        self._by_parser(self._live, self._texts)
        self._live, self._texts = np.zeros(0, np.int64), texts_of([])
        for rows, texts in peeled:
            if len(rows):
                self.go_on(rows, texts)

    def _strange(self, rows: Integers, texts: pa.StringArray, layouts: Layouts, more: Flags) -> Flags:
        """Return which lines are for the parser: whole events that begin with a header or a wrapper of their own, and lines of
        several lines."""
        whole = self._fields[rows] != 0
        broken = matching(texts, r"\n")
        strange: Flags = (whole & (more | (layouts >= 0))) | (broken & ~whole)
        some = np.flatnonzero(broken & whole & ~strange)
        if len(some):
            first_lines = pc.struct_field(pc.extract_regex(texts.take(index_of(some)), r"^(?P<first>[^\n]*)"), "first")
            strange[some] = self._recogniser.layouts(first_lines) >= 0
        return strange

    def _take_apart(self) -> tuple[Integers, pa.StringArray]:
        """Return the messages of those lines that are documents."""
        begun = matching(self._texts, DOCUMENT)
        if not begun.any():
            return np.zeros(0, np.int64), texts_of([])
        live, texts = self._live[begun], self._texts.filter(mask_of(begun))
        found = self._documents.read(texts, lambda some, stamps, layout: self._stamps(live[some], stamps, layout))
        if found is None or not self._agrees(found, live, texts):
            return np.zeros(0, np.int64), texts_of([])
        self.met.add(DOCUMENT)
        rows = live[found.rows]
        left = np.isin(self._live, rows, invert=True)
        self._live, self._texts = self._live[left], self._texts.filter(mask_of(left))
        self._odd[rows] |= found.partial
        self._stamp(rows, found.at_us)
        self._fields[rows] = self._field_codes(found)[found.fields]
        self._labelled[rows] = self._more_labels(rows, found)
        return rows, found.texts

    def _agrees(self, found: Documents, live: Integers, texts: pa.StringArray) -> bool:
        """Tell whether the parser takes the same out of some documents, one of each kind at first."""
        undated = np.where(found.at_us <= UNDATED, found.at_us, 0)
        _, firsts = np.unique(np.stack((found.fields, found.labels, undated)), axis=1, return_index=True)
        for at in (*firsts[:PROBED].tolist(), len(found.rows) - 1):
            row = int(live[int(found.rows[at])])
            given = self._labels[int(self._labelled[row])]
            taken_us = int(self._lines.taken_us[row])
            ingested_at = None if taken_us == NO_TIME else to_datetime(taken_us)
            inner = _outermost_off(Record("", 0, texts[int(found.rows[at])].as_py(), ingested_at=ingested_at, labels=given))
            if inner is None or inner.starts != bool(inner.fields):
                return False
            taken = (
                found.texts[at].as_py(),
                found.field_sets[int(found.fields[at])],
                bool(found.partial[at]),
                int(found.at_us[at]),
            )
            if taken != (inner.text, inner.fields, inner.partial, wrapped_us(inner)):
                return False
            if inner.labels != {**found.label_sets[int(found.labels[at])], **given}:
                return False
        return True

    def _field_codes(self, found: Documents) -> Integers:
        return np.array([self._field_code(fields) for fields in found.field_sets], np.int64)

    def _field_code(self, fields: Labels) -> int:
        kind = tuple(fields.items())
        if kind not in self._field_codes_of:
            self._field_codes_of[kind] = len(self._field_sets)
            self._field_sets.append(fields)
        return self._field_codes_of[kind]

    def _more_labels(self, rows: Integers, found: Documents) -> Integers:
        """Return the codes of the labels of rows with those that their documents name; what a row was given wins."""
        kinds, which = np.unique(np.stack((found.labels, self._labelled[rows])), axis=1, return_inverse=True)
        codes = []
        for own, given in kinds.T.tolist():
            labels = {**found.label_sets[own], **self._labels[given]} if found.label_sets[own] else self._labels[given]
            codes.append(self._label_code(labels))
        return np.array(codes, np.int64)[which.ravel()]

    def _stamps(self, rows: Integers, stamps: pa.Array, layout: str) -> Integers:
        """Return the times of stamps of rows."""
        return read_stamps(self._lines, rows, self._labelled[rows], self._labels, stamps, layout)

    def _take_off(self, prefix: Prefix, rows: Integers, texts: pa.StringArray) -> tuple[Integers, pa.StringArray]:
        """Return `texts` without a prefix that all of them bear."""
        heads = pc.extract_regex(texts, prefix.head)
        stamps, keys = pc.struct_field(heads, "at"), pc.struct_field(heads, "key")
        begins, data = offsets_of(texts)
        stamp_ends = begins[:-1] + numbers_of(pc.binary_length(stamps))
        ends = stamp_ends + numbers_of(pc.binary_length(keys))
        borders = np.stack((begins[:-1], ends), axis=1).ravel()
        rests = strings(data, np.append(borders, begins[-1])).take(index_of(np.arange(len(rows)) * 2 + 1))
        certain = self._label(prefix, rows, texts, keys, rests) & self._date(rows, stamps)
        self._by_parser(rows[~certain], texts.filter(mask_of(~certain)))
        return rows[certain], rests.filter(mask_of(certain))

    def _label(
        self, prefix: Prefix, rows: Integers, texts: pa.StringArray, keys: pa.StringArray, rests: pa.StringArray
    ) -> Flags:
        """Give rows what a prefix says of them, as the parser does of the first of those alike; return which are sure."""
        unwrap = import_module(f"{wrappers.__name__}.{prefix.name}").unwrap
        encoded = keys.dictionary_encode()
        kinds = (numbers_of(encoded.indices) * len(self._labels) + self._labelled[rows]) * len(self._sources) + self._source[
            rows
        ]
        certain = np.ones(len(rows), np.bool_)
        _, firsts, which = np.unique(kinds, return_index=True, return_inverse=True)
        names = list(self._sources)
        made: list[tuple[int, int, bool]] = []
        for at in firsts.tolist():
            row = int(rows[at])
            outer = Record(names[int(self._source[row])], 0, texts[at].as_py(), labels=self._labels[int(self._labelled[row])])
            inner = unwrap(outer)
            sure = inner is not None and inner.text == rests[at].as_py() and not (inner.fields or inner.starts)
            codes = self._codes(inner.source_id, inner.labels) if inner is not None and sure else (0, 0)
            made.append((*codes, not sure or (inner is not None and inner.partial)))
            certain[which == len(made) - 1] = sure
        columns = np.array(made, np.int64).reshape(-1, 3)[which]
        self._source[rows], self._labelled[rows] = columns[:, 0], columns[:, 1]
        self._odd[rows] |= columns[:, 2] != 0
        return certain

    def _codes(self, source_id: str, labels: Labels) -> tuple[int, int]:
        return self._sources.setdefault(source_id, len(self._sources)), self._label_code(labels)

    def _label_code(self, labels: Labels) -> int:
        kind = tuple(labels.items())
        if kind not in self._label_codes:
            self._label_codes[kind] = len(self._labels)
            self._labels.append(labels)
        return self._label_codes[kind]

    def _date(self, rows: Integers, stamps: pa.StringArray) -> Flags:
        """Give rows the stamps of a prefix; return which of them are sure."""
        sizes = numbers_of(pc.binary_length(stamps))
        certain: Flags = sizes == 0
        if certain.all():
            return certain
        digits = matching(stamps, r"^\d")
        for layout, some in (("iso", digits), ("month_day", ~digits & ~certain & (self._at_us[rows] <= UNDATED))):
            own = np.flatnonzero(some)
            if len(own):
                at_us = self._stamps(rows[own], stamps.take(index_of(own)), layout)
                certain[own] = (at_us != NO_TIME) & (at_us != UNDATED)
                self._stamp(rows[own], at_us)
        return certain

    def _stamp(self, rows: Integers, at_us: Integers) -> None:
        """Give rows the stamps of a wrapper: a time replaces the one around it, a stamp out of bounds does not."""
        given = self._at_us[rows]
        stamped = (at_us > UNDATED) | ((at_us == MISDATED) & (given == UNDATED))
        self._at_us[rows] = np.where(stamped, at_us, given)

    def _by_parser(self, rows: Integers, texts: pa.StringArray) -> None:
        """Let the parser take everything off some lines."""
        if not len(rows):
            return
        records = [self._read(row) for row in rows.tolist()]
        texts = texts_of([record.text for record in records])
        layouts = self._recogniser.layouts(texts)
        for row, record, layout in zip(rows.tolist(), records, layouts.tolist(), strict=True):
            self._source[row], self._labelled[row] = self._codes(record.source_id, record.labels)
            self._at_us[row] = wrapped_us(record)
            whole = layout < 0 and is_whole(record) and not self._recogniser.begins(record.text.partition("\n")[0])
            self._odd[row] = not (whole or is_line(record))
            self._fields[row] = self._field_code(record.fields) if whole else 0
        self._done.append(_Some(rows, texts, layouts))

    def _sorted(self) -> tuple[RecordRows, Layouts]:
        rows = np.concatenate([some.rows for some in self._done])
        texts = pa.concat_arrays([some.texts for some in self._done])
        layouts = np.concatenate([some.layouts for some in self._done])
        order = np.lexsort((rows, self._source[rows]))
        line = rows[order]
        ended = with_behind(texts.take(index_of(order)), "\n")
        starts, data = offsets_of(ended)
        odd = self._odd[line]
        odd[1:] |= odd[:-1] & (self._source[line][1:] == self._source[line][:-1])  # a part of a line goes on in the next row
        return self._rows(data, starts, line, odd), layouts[order]

    def _rows(self, data: bytes, starts: Integers, line: Integers, odd: Flags) -> RecordRows:
        return RecordRows(
            lines=self._lines,
            data=data,
            starts=starts,
            line=line,
            source=self._source[line],
            sources=list(self._sources),
            labelled=self._labelled[line],
            labels=self._labels,
            at_us=self._at_us[line],
            odd=odd,
            fields=self._fields[line],
            field_sets=self._field_sets,
            read=self._read,
        )


def _outermost_off(record: Record) -> Record | None:
    """Return a document without what is around its message, by the parser."""
    return next((inner for unwrap in by_first_character()["{"] if (inner := unwrap(record)) is not None), None)


def wrapped_us(record: Record) -> int:
    """Return the time of the wrapper of a record; MISDATED where its stamp is out of bounds, UNDATED where there is none."""
    if record.at is not None:
        return to_us(record.at)
    return MISDATED if record.misdated else UNDATED


def is_line(record: Record) -> bool:
    """Tell whether a record is a line of a program, of which its wrapper has nothing to say but whose it is, and when."""
    strange = record.starts or record.partial or record.fields or record.identity
    return not strange and "\n" not in record.text


def is_whole(record: Record) -> bool:
    """Tell whether a record is a whole event of whose level or logger its wrapper speaks."""
    strange = record.partial or record.identity or opens_document(record.text)
    return record.starts and bool(record.fields) and not strange
