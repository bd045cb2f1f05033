"""records: lines without wrappers, source by source. Where columns cannot remove a wrapper, the parser reads the line."""

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
    without_ends,
)
from engine.columns.stamps import offsets_of, read_stamps, to_datetime, wrapped_us
from engine.columns.wrapping import OUTERMOST, PREFIXES, Prefix, may_have_wrapper, sign
from engine.model.records import NO_LABELS, Labels, Record
from engine.parse import wrappers
from engine.parse.continuation import opens_document
from engine.parse.unwrapping import NESTING
from engine.parse.wrappers import by_first_character

PROBED = 16  # documents of a block whose result is compared with the parser
DOCUMENT = r'^\{"'


class RecordRows(Struct, frozen=True, dict=True):
    """Lines without wrappers. The rows of one source are together and in order.

    Attributes:
        lines: the lines of the block.
        data: the texts of all rows as UTF-8, each with a line end; row i begins at `starts[i]`.
        line: the number of each row's line in `lines`.
        source: the source of each row, as an index in `sources`.
        label_codes: the labels of each row, as an index in `labels`.
        at_us: the stamp of the wrapper; UNDATED without one, MISDATED when it is out of bounds.
        irregular: rows that may be part of a line or several lines; the stages read their events.
        fields: the fields that a document gives (level, logger, thread), as an index in `field_sets`, whose first set is empty.
            A row with fields is a whole event.
        read: the parser: returns the record of a line.
    """

    lines: Lines
    data: bytes
    starts: Integers
    line: Integers
    source: Integers
    sources: Sequence[str]
    label_codes: Integers
    labels: Sequence[Labels]
    at_us: Integers
    irregular: Flags
    fields: Integers
    field_sets: Sequence[Labels]
    read: Callable[[int], Record]

    def __len__(self) -> int:
        return len(self.line)

    def record(self, row: int) -> Record:
        """Return the record of a row as the parser reads it."""
        return self.read(int(self.line[row]))

    def text(self, row: int) -> str:
        """Return the text of a row. It ends in a line end if its document holds an empty stack trace."""
        return self.data[int(self.starts[row]) : int(self.starts[row + 1]) - 1].decode()

    @cached_property
    def texts(self) -> pa.StringArray:
        """The text of each row, without its line end."""
        return without_ends(self.data, self.starts)


class Unwrapper:
    """Removes the wrappers of blocks of lines. Prefixes that occurred before are searched for before layouts are."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self._documents = DocumentColumns()
        self._learnt: set[str] = set()

    def rows(self, lines: Lines, read: Callable[[int], Record]) -> tuple[RecordRows, Layouts]:
        """Return `lines` without wrappers, and the layout of each row.

        Args:
            read: returns the record of a line, by its number; used for lines whose wrappers columns cannot remove.
        """
        texts = without_ends(lines.data, lines.starts)
        unwrapping = _BlockUnwrapping(lines, read, self._recogniser, self._documents)
        numbers = np.arange(len(lines))
        prefixed = self._prefixed(texts)
        if prefixed.any():
            unwrapping.distribute(numbers[~prefixed], texts.filter(mask_of(~prefixed)))
            unwrapping.add(numbers[prefixed], texts.filter(mask_of(prefixed)))
        else:
            unwrapping.distribute(numbers, texts)
        if not unwrapping.remaining:
            return unwrapping.unchanged(), unwrapping.layouts()
        rows, layouts = unwrapping.rows()
        self._learnt |= unwrapping.occurred
        return rows, layouts

    def _prefixed(self, texts: pa.StringArray) -> Flags:
        """Return which lines have a prefix that occurred before, or are documents if documents did."""
        regexes = [prefix.fits for prefix in PREFIXES if prefix.name in self._learnt]
        regexes += [DOCUMENT] if DOCUMENT in self._learnt else []
        if not regexes:
            return np.zeros(len(texts), np.bool_)
        fits = matching(texts, "|".join(regexes))
        rows = np.flatnonzero(fits)
        if len(rows):
            fits[rows] = ~self._recogniser.in_specific_layout(texts.take(index_of(rows)))
        return fits


class _BareLines(Struct, frozen=True):
    """Lines without wrappers: their numbers, texts and layouts."""

    rows: Integers
    texts: pa.StringArray
    layouts: Layouts


class _BlockUnwrapping:
    """Removes the wrappers of the lines of one block, from the outermost inwards.

    Attributes:
        remaining: how many lines may have another wrapper.
        occurred: the names of the prefixes that were removed, and DOCUMENT if messages were taken out of documents.
    """

    def __init__(self, lines: Lines, read: Callable[[int], Record], recogniser: Recogniser, documents: DocumentColumns) -> None:
        count = len(lines)
        self._lines, self._read, self._recogniser, self._documents = lines, read, recogniser, documents
        self._sources: dict[str, int] = {}
        self._labels: list[Labels] = []
        self._code_of_labels: dict[tuple[tuple[str, str], ...], int] = {}
        codes = [self._codes(chunk.source_id, chunk.labels) for chunk in lines.chunks]
        self._source, self._label_codes = np.repeat(np.array(codes, np.int64).reshape(-1, 2), lines.per_chunk, axis=0).T.copy()
        self._outer = len(self._sources)  # sources with a lower code than this are of chunks, others were named by a wrapper
        self._at_us = np.full(count, UNDATED, np.int64)
        self._irregular = np.zeros(count, np.bool_)
        self._fields = np.zeros(count, np.int64)
        self._field_sets: list[Labels] = [NO_LABELS]
        self._code_of_fields: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        self._bare: list[_BareLines] = []
        self._wrapped, self._texts = np.zeros(0, np.int64), texts_of([])
        self.occurred: set[str] = set()

    @property
    def remaining(self) -> int:
        return len(self._wrapped)

    def layouts(self) -> Layouts:
        """Return the layouts of the lines, where none has a wrapper."""
        return self._bare[0].layouts

    def unchanged(self) -> RecordRows:
        """Return the lines as they are, where none has a wrapper."""
        return self._rows(self._lines.data, self._lines.starts, np.arange(len(self._lines)), self._irregular)

    def add(self, rows: Integers, texts: pa.StringArray) -> None:
        """Add lines that have another wrapper."""
        self._wrapped = np.concatenate((self._wrapped, rows))
        self._texts = pa.concat_arrays([self._texts, texts])

    def rows(self) -> tuple[RecordRows, Layouts]:
        """Remove the wrappers of all remaining lines; return all lines, and their layouts."""
        for _ in range(NESTING):
            if not self.remaining:
                break
            self._step()
        self._by_parser(self._wrapped, self._texts)
        return self._sorted()

    def distribute(self, rows: Integers, texts: pa.StringArray) -> None:
        """Add lines that may have another wrapper. Those that match a specific layout have none."""
        layouts = self._recogniser.layouts(texts)
        more = (layouts < 0) | (layouts >= self._recogniser.first_generic)
        outer = self._source[rows] < self._outer
        for own, inside in ((np.flatnonzero(more & outer), False), (np.flatnonzero(more & ~outer), True)):
            if len(own):
                more[own] = may_have_wrapper(texts.take(index_of(own)), inside)
        complex_ = self._complex(rows, texts, layouts, more)
        if complex_.any():
            self._by_parser(rows[complex_], texts.filter(mask_of(complex_)))
            rows, texts, layouts, more = rows[~complex_], texts.filter(mask_of(~complex_)), layouts[~complex_], more[~complex_]
        if not more.any():
            self._bare.append(_BareLines(rows, texts, layouts))
            return
        self._bare.append(_BareLines(rows[~more], texts.filter(mask_of(~more)), layouts[~more]))
        self.add(rows[more], texts.filter(mask_of(more)))

    def _step(self) -> None:
        """Remove one wrapper of each remaining line; the parser reads those whose wrapper columns cannot remove."""
        unwrapped = [self._unwrap_documents()]
        for prefix in PREFIXES:
            if not len(self._wrapped):
                break
            fits = matching(self._texts, prefix.fits)
            if prefix.name in OUTERMOST:
                fits &= self._source[self._wrapped] < self._outer
            if not fits.any():
                continue
            rows, texts = self._wrapped[fits], self._texts.filter(mask_of(fits))
            self._wrapped, self._texts = self._wrapped[~fits], self._texts.filter(mask_of(~fits))
            self.occurred.add(prefix.name)
            ambiguous = matching(texts, sign(inside=False, before=prefix.name))
            self._by_parser(rows[ambiguous], texts.filter(mask_of(ambiguous)))
            unwrapped.append(self._cut_prefix(prefix, rows[~ambiguous], texts.filter(mask_of(~ambiguous))))
        self._by_parser(self._wrapped, self._texts)
        self._wrapped, self._texts = np.zeros(0, np.int64), texts_of([])
        for rows, texts in unwrapped:
            if len(rows):
                self.distribute(rows, texts)

    def _complex(self, rows: Integers, texts: pa.StringArray, layouts: Layouts, more: Flags) -> Flags:
        """Return which lines the parser has to read: messages with several lines, and whole events whose message begins with a
        header or may have another wrapper."""
        whole = self._fields[rows] != 0
        multiline = matching(texts, r"\n")
        flags: Flags = (whole & (more | (layouts >= 0))) | (multiline & ~whole)
        own = np.flatnonzero(multiline & whole & ~flags)
        if len(own):
            first_lines = pc.struct_field(pc.extract_regex(texts.take(index_of(own)), r"^(?P<first>[^\n]*)"), "first")
            flags[own] = self._recogniser.layouts(first_lines) >= 0
        return flags

    def _unwrap_documents(self) -> tuple[Integers, pa.StringArray]:
        """Take the documents out of the remaining lines; return their numbers and messages."""
        begun = matching(self._texts, DOCUMENT)
        if not begun.any():
            return np.zeros(0, np.int64), texts_of([])
        wrapped, texts = self._wrapped[begun], self._texts.filter(mask_of(begun))
        documents = self._documents.read(texts, lambda own, stamps, layout: self._stamps(wrapped[own], stamps, layout))
        if documents is None or not self._parser_agrees(documents, wrapped, texts):
            return np.zeros(0, np.int64), texts_of([])
        self.occurred.add(DOCUMENT)
        rows = wrapped[documents.rows]
        others = np.isin(self._wrapped, rows, invert=True)
        self._wrapped, self._texts = self._wrapped[others], self._texts.filter(mask_of(others))
        self._irregular[rows] |= documents.partial
        self._set_times(rows, documents.at_us)
        self._fields[rows] = self._field_codes(documents)[documents.fields]
        self._label_codes[rows] = self._more_labels(rows, documents)
        return rows, documents.texts

    def _parser_agrees(self, documents: Documents, wrapped: Integers, texts: pa.StringArray) -> bool:
        """Return whether the parser reads the same from the first document of each kind, of up to PROBED, and the last one."""
        undated = np.where(documents.at_us <= UNDATED, documents.at_us, 0)
        _, firsts = np.unique(np.stack((documents.fields, documents.labels, undated)), axis=1, return_index=True)
        for at in (*firsts[:PROBED].tolist(), len(documents.rows) - 1):
            row = int(wrapped[int(documents.rows[at])])
            given = self._labels[int(self._label_codes[row])]
            ingested_us = int(self._lines.ingested_us[row])
            ingested_at = None if ingested_us == NO_TIME else to_datetime(ingested_us)
            outer = Record("", 0, texts[int(documents.rows[at])].as_py(), ingested_at=ingested_at, labels=given)
            inner = _unwrapped_once(outer)
            if inner is None or inner.starts != bool(inner.fields):
                return False
            by_columns = (
                documents.texts[at].as_py(),
                documents.field_sets[int(documents.fields[at])],
                bool(documents.partial[at]),
                int(documents.at_us[at]),
            )
            if by_columns != (inner.text, inner.fields, inner.partial, wrapped_us(inner)):
                return False
            if inner.labels != {**documents.label_sets[int(documents.labels[at])], **given}:
                return False
        return True

    def _field_codes(self, documents: Documents) -> Integers:
        return np.array([self._field_code(fields) for fields in documents.field_sets], np.int64)

    def _field_code(self, fields: Labels) -> int:
        kind = tuple(fields.items())
        if kind not in self._code_of_fields:
            self._code_of_fields[kind] = len(self._field_sets)
            self._field_sets.append(fields)
        return self._code_of_fields[kind]

    def _more_labels(self, rows: Integers, documents: Documents) -> Integers:
        """Return the label codes of rows with the labels of their documents added; labels that a row had already win."""
        kinds, which = np.unique(np.stack((documents.labels, self._label_codes[rows])), axis=1, return_inverse=True)
        codes = []
        for own, given in kinds.T.tolist():
            labels = {**documents.label_sets[own], **self._labels[given]} if documents.label_sets[own] else self._labels[given]
            codes.append(self._label_code(labels))
        return np.array(codes, np.int64)[which.ravel()]

    def _stamps(self, rows: Integers, stamps: pa.Array, layout: str) -> Integers:
        """Return the time of the stamp of each row."""
        return read_stamps(self._lines, rows, self._label_codes[rows], self._labels, stamps, layout)

    def _cut_prefix(self, prefix: Prefix, rows: Integers, texts: pa.StringArray) -> tuple[Integers, pa.StringArray]:
        """Return rows, and texts without the prefix that all have. Lines of which columns are not certain go to the parser."""
        heads = pc.extract_regex(texts, prefix.head)
        stamps, keys = pc.struct_field(heads, "at"), pc.struct_field(heads, "key")
        begins, data = offsets_of(texts)
        stamp_ends = begins[:-1] + numbers_of(pc.binary_length(stamps))
        ends = stamp_ends + numbers_of(pc.binary_length(keys))
        borders = np.stack((begins[:-1], ends), axis=1).ravel()
        rests = strings(data, np.append(borders, begins[-1])).take(index_of(np.arange(len(rows)) * 2 + 1))
        certain = self._set_origins(prefix, rows, texts, keys, rests) & self._set_prefix_times(rows, stamps)
        self._by_parser(rows[~certain], texts.filter(mask_of(~certain)))
        return rows[certain], rests.filter(mask_of(certain))

    def _set_origins(
        self, prefix: Prefix, rows: Integers, texts: pa.StringArray, keys: pa.StringArray, rests: pa.StringArray
    ) -> Flags:
        """Set source and labels of rows by their prefix; return the rows for which they are certain.

        The parser reads the first row of each distinct key, source and labels; the others get the same.
        """
        unwrap = import_module(f"{wrappers.__name__}.{prefix.name}").unwrap
        encoded = keys.dictionary_encode()
        kinds = (numbers_of(encoded.indices) * len(self._labels) + self._label_codes[rows]) * len(self._sources) + self._source[
            rows
        ]
        certain = np.ones(len(rows), np.bool_)
        _, firsts, which = np.unique(kinds, return_index=True, return_inverse=True)
        names = list(self._sources)
        results: list[tuple[int, int, bool]] = []
        for at in firsts.tolist():
            row = int(rows[at])
            outer = Record(
                names[int(self._source[row])], 0, texts[at].as_py(), labels=self._labels[int(self._label_codes[row])]
            )
            inner = unwrap(outer)
            agrees = inner is not None and inner.text == rests[at].as_py() and not (inner.fields or inner.starts)
            codes = self._codes(inner.source_id, inner.labels) if inner is not None and agrees else (0, 0)
            results.append((*codes, not agrees or (inner is not None and inner.partial)))
            certain[which == len(results) - 1] = agrees
        columns = np.array(results, np.int64).reshape(-1, 3)[which]
        self._source[rows], self._label_codes[rows] = columns[:, 0], columns[:, 1]
        self._irregular[rows] |= columns[:, 2] != 0
        return certain

    def _codes(self, source_id: str, labels: Labels) -> tuple[int, int]:
        return self._sources.setdefault(source_id, len(self._sources)), self._label_code(labels)

    def _label_code(self, labels: Labels) -> int:
        kind = tuple(labels.items())
        if kind not in self._code_of_labels:
            self._code_of_labels[kind] = len(self._labels)
            self._labels.append(labels)
        return self._code_of_labels[kind]

    def _set_prefix_times(self, rows: Integers, stamps: pa.StringArray) -> Flags:
        """Set the times of rows by the stamps of their prefix; return the rows whose stamp was read, or that have none."""
        sizes = numbers_of(pc.binary_length(stamps))
        certain: Flags = sizes == 0
        if certain.all():
            return certain
        digits = matching(stamps, r"^\d")
        for layout, flags in (("iso", digits), ("month_day", ~digits & ~certain & (self._at_us[rows] <= UNDATED))):
            own = np.flatnonzero(flags)
            if len(own):
                at_us = self._stamps(rows[own], stamps.take(index_of(own)), layout)
                certain[own] = (at_us != NO_TIME) & (at_us != UNDATED)
                self._set_times(rows[own], at_us)
        return certain

    def _set_times(self, rows: Integers, at_us: Integers) -> None:
        """Set times by the stamps of a wrapper. A time replaces that of an outer wrapper; a stamp out of bounds does not."""
        given = self._at_us[rows]
        stamped = (at_us > UNDATED) | ((at_us == MISDATED) & (given == UNDATED))
        self._at_us[rows] = np.where(stamped, at_us, given)

    def _by_parser(self, rows: Integers, texts: pa.StringArray) -> None:
        """Let the parser remove all wrappers of some lines."""
        if not len(rows):
            return
        records = [self._read(row) for row in rows.tolist()]
        texts = texts_of([record.text for record in records])
        layouts = self._recogniser.layouts(texts)
        for row, record, layout in zip(rows.tolist(), records, layouts.tolist(), strict=True):
            self._source[row], self._label_codes[row] = self._codes(record.source_id, record.labels)
            self._at_us[row] = wrapped_us(record)
            whole = layout < 0 and is_whole_event(record) and not self._recogniser.is_header(record.text.partition("\n")[0])
            self._irregular[row] = not (whole or is_plain_line(record))
            self._fields[row] = self._field_code(record.fields) if whole else 0
        self._bare.append(_BareLines(rows, texts, layouts))

    def _sorted(self) -> tuple[RecordRows, Layouts]:
        rows = np.concatenate([lines.rows for lines in self._bare])
        texts = pa.concat_arrays([lines.texts for lines in self._bare])
        layouts = np.concatenate([lines.layouts for lines in self._bare])
        order = np.lexsort((rows, self._source[rows]))
        line = rows[order]
        ended = with_behind(texts.take(index_of(order)), "\n")
        starts, data = offsets_of(ended)
        irregular = self._irregular[line]
        # the next row may be the rest of a partial line
        irregular[1:] |= irregular[:-1] & (self._source[line][1:] == self._source[line][:-1])
        return self._rows(data, starts, line, irregular), layouts[order]

    def _rows(self, data: bytes, starts: Integers, line: Integers, irregular: Flags) -> RecordRows:
        return RecordRows(
            lines=self._lines,
            data=data,
            starts=starts,
            line=line,
            source=self._source[line],
            sources=list(self._sources),
            label_codes=self._label_codes[line],
            labels=self._labels,
            at_us=self._at_us[line],
            irregular=irregular,
            fields=self._fields[line],
            field_sets=self._field_sets,
            read=self._read,
        )


def _unwrapped_once(record: Record) -> Record | None:
    """Return the record within a document, by the parser; None when no wrapper reads it."""
    return next((inner for unwrap in by_first_character()["{"] if (inner := unwrap(record)) is not None), None)


def is_plain_line(record: Record) -> bool:
    """Return whether a record is one whole line of a program, and its wrapper gave a source, labels and a time at most."""
    more = record.starts or record.partial or record.fields or record.identity
    return not more and "\n" not in record.text


def is_whole_event(record: Record) -> bool:
    """Return whether a record is a whole event whose wrapper gave fields, such as its level or logger."""
    more = record.partial or record.identity or opens_document(record.text)
    return record.starts and bool(record.fields) and not more
