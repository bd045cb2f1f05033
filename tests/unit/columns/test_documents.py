"""Documents taken apart side by side are what the parser takes out of each, whatever their stamps are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns.documents import DocumentColumns, Documents
from engine.columns.lines import NO_TIME, Integers, texts_of
from engine.columns.records import wrapped_us
from engine.columns.stamps import StampReader, to_us
from engine.model.records import Record
from engine.parse.stamps import StampBounds
from engine.parse.wrappers.structured_json import unwrap

TAKEN = datetime(2023, 3, 1, tzinfo=UTC)
KEYS = ("@timestamp", "time", "ts", "date")
FLOATS = st.sampled_from(
    ("1664956976.908", "1664956976.9080005", "0.001", "0.0", "-0.0", "1e-05", "1.5e-05", "-5.5", "1e16", "1.5e16",
     "1.664956976e9", "1664956976908.0", "1e300", "-62135596801.0", "1e999", "253402300799.9999999", "4133980800.5")
)  # fmt: skip
WHOLE = st.sampled_from(
    ("0", "5", "-5", "1664956976", "1664956976908", "1664956976908123", "1664956976908123456", "9999999999", "10000000000",
     "9223372036854775807", "9223372036854775808", "-1664956976908")
)  # fmt: skip
TEXTS = st.sampled_from(
    ("2022-10-05T17:05:39.869Z", "1970-01-01T00:00:00Z", "2023-03-01T01:00:00Z", "2022-02-30T00:00:00Z", "-", "soon", "0012",
     "1664956976", "1664956976908", "1664956976908123456789", "2022-10-05T17:05:60Z", "\uff11\uff12")
).map(json.dumps)  # fmt: skip
OTHERS = st.sampled_from(("true", "[1]"))
STAMPS = st.one_of(FLOATS, FLOATS, WHOLE, TEXTS, OTHERS)


def _read(texts: Sequence[str], columns: DocumentColumns) -> Documents | None:
    def stamps(rows: Integers, values: pa.Array, layout: str) -> Integers:
        return StampReader(layout, UTC, StampBounds()).read(values, np.full(len(rows), to_us(TAKEN)))

    return columns.read(texts_of(texts), stamps)


def _document(stamps: Mapping[str, str]) -> str:
    return "{" + ", ".join(('"message": "a line"', *(f'"{key}": {stamp}' for key, stamp in stamps.items()))) + "}"


@given(documents=st.lists(st.dictionaries(st.sampled_from(KEYS), STAMPS, max_size=3), min_size=1, max_size=12))
def test_any_stamps_are_read_as_the_parser_reads_them(documents: list[dict[str, str]]) -> None:
    texts = [_document(stamps) for stamps in documents]
    _as_the_parser(texts, _read(texts, DocumentColumns()))


@given(kinds=st.sampled_from((FLOATS, WHOLE, TEXTS, FLOATS | WHOLE)), data=st.data())
def test_stamps_of_one_kind_are_read_as_the_parser_reads_them(kinds: st.SearchStrategy[str], data: st.DataObject) -> None:
    stamps = data.draw(st.lists(kinds, min_size=1, max_size=12))
    texts = [_document({"@timestamp": stamp, "time": '"2022-10-05T17:05:39Z"'}) for stamp in stamps]
    _as_the_parser(texts, _read(texts, DocumentColumns()))


def _as_the_parser(texts: Sequence[str], documents: Documents | None) -> None:
    if documents is None:
        return
    for row, at_us in zip(documents.rows.tolist(), documents.at_us.tolist(), strict=True):
        inner = unwrap(Record("a", 0, texts[row], ingested_at=TAKEN))
        assert inner is not None
        assert at_us == wrapped_us(inner), texts[row]


EXPLAINED = st.fixed_dictionaries(
    {"message": st.sampled_from(("failed", "failed: a.B: no", "failed ")), "level": st.just("ERROR")},
    optional={
        "stack_trace": st.sampled_from(
            ("a.B: no\n\tat a.C\n", "failed", ": a.B: no\n\tat a.C", "a.B: no\u00a0", "a.B: \x1bno", " ")
        ),
        "error.stack_trace": st.sampled_from(("a.B: no\n\tat a.C", "a.D: yes", "")),
        "error.message": st.sampled_from(("no", "other")),
        "error.type": st.just("a.B"),
        "error": st.sampled_from(("no", 7)),
        "exception": st.just({"stacktrace": "a.B: no\n\tat a.C"}),
    },
)


@given(documents=st.lists(EXPLAINED, min_size=1, max_size=12))
def test_explanations_are_read_as_the_parser_reads_them(documents: list[dict[str, Any]]) -> None:
    texts = [json.dumps(document) for document in documents]
    columns = _read(texts, DocumentColumns())
    for row, text in [] if columns is None else zip(columns.rows.tolist(), columns.texts.to_pylist(), strict=True):
        inner = unwrap(Record("a", 0, texts[row]))
        assert inner is not None
        assert text == inner.text, texts[row]


def test_traces_are_not_left_to_the_parser() -> None:
    """As Elastic's and Logstash's layouts write them."""
    ecs = {"error.type": "a.B", "error.message": "no", "error.stack_trace": "a.B: no\n\tat a.C\n"}
    logstash = {"stack_trace": "a.B: no\n\tat a.C\n"}
    texts = [json.dumps({"message": "failed", "level": "ERROR", **error}) for error in (ecs, logstash)]
    documents = _read(texts, DocumentColumns())
    assert documents is not None
    assert sorted(documents.rows.tolist()) == [0, 1]
    assert documents.texts.to_pylist() == ["failed\na.B: no\n\tat a.C"] * 2


USUAL = ("{n}.5", "0.{n}", "16649569{n}.908", "16649569{n}", "1664956976{n}9")


@pytest.mark.parametrize("stamp", [*USUAL, '"1970-01-01T00:{n}:00Z"', '"16649569{n}"', '"no"'])
def test_no_stamp_of_a_usual_kind_is_left_to_the_parser(stamp: str) -> None:
    """Fluent Bit writes seconds as floats; a clock that is not set is out of bounds."""
    texts: list[Any] = [_document({"@timestamp": stamp.format(n=n)}) for n in range(10, 60)]
    documents = _read(texts, DocumentColumns())
    assert documents is not None
    assert documents.rows.tolist() == list(range(50))
    assert NO_TIME not in documents.at_us
    _as_the_parser(texts, documents)


FILEBEAT = '{"@timestamp": "2022-10-05T17:05:39.869Z", "message": "a", "log": {"offset": 1, "file": {"path": "/a"}}}'
FLUENT_BIT = '{"@timestamp": "2022-10-05T17:05:39.869Z", "log": "a", "stream": "stdout", "kubernetes": {"pod_name": "p"}}'
DOCKER = '{"log": "a\\n", "stream": "stdout", "time": "2022-10-05T17:05:39.869Z"}'
NUMBERED = '{"@timestamp": 1664956976908, "message": "a"}'
SHAPES = (FILEBEAT, FLUENT_BIT, DOCKER, NUMBERED)
SPOILT = ("{no document}", '{"log": "a", "ids": [1, 2]}', '{"log": "a", "size": 9223372036854775808}')


@given(blocks=st.lists(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=8), min_size=1, max_size=4))
def test_documents_that_have_one_key_for_different_things_are_all_read(blocks: list[list[str]]) -> None:
    columns = DocumentColumns()
    for texts in blocks:
        documents = _read(texts, columns)
        assert documents is not None
        assert sorted(documents.rows.tolist()) == list(range(len(texts)))
        assert set(documents.texts.to_pylist()) == {"a"}


@given(texts=st.lists(st.sampled_from((*SHAPES, *SPOILT)), max_size=12))
def test_what_is_no_document_for_columns_spoils_no_other(texts: list[str]) -> None:
    documents = _read(texts, DocumentColumns())
    assert sorted([] if documents is None else documents.rows.tolist()) == [
        row for row, text in enumerate(texts) if text in SHAPES
    ]


def test_null_is_left_to_the_parser_as_a_value_and_read_in_a_text() -> None:
    values = ('"rack: null"', "null", " null", '"a"')
    texts = [f'{{"message": "a line", "thread" :{value}, "level": "INFO"}}' for value in values]
    documents = _read(texts, DocumentColumns())
    assert documents is not None
    assert documents.rows.tolist() == [0, 3]
