"""Stamps read side by side are what the parser reads, and NO_TIME wherever it has to be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns.lines import MISDATED, NO_TIME, UNDATED, lines_of, texts_of
from engine.columns.stamps import StampReader, read_stamps, to_us
from engine.model.records import EARLIEST_LABEL, NEAR_LABEL, Record
from engine.parse.stamps import bounds_of, stamp_of
from engine.parse.times import zone_of
from engine.parse.wrappers.structured_json import epoch_text
from engine.ports import Chunk

TAKEN = datetime(2023, 3, 1, tzinfo=UTC)
SHAPES = {
    "iso": ["%Y-%m-%d %H:%M:%S,{ms}", "%Y-%m-%dT%H:%M:%S.{ms}Z", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.{ms}123456+09:00"],
    "kibana": ["%b %d, %Y @ %H:%M:%S.{ms}"],
    "short_year": ["%y/%m/%d %H:%M:%S"],
    "day_first": ["%d-%m-%Y %H:%M:%S.{ms}", "%d/%b/%Y:%H:%M:%S", "%d-%b-%y %H:%M:%S"],
    "month_day": ["%m%d %H:%M:%S.{ms}000", "%b %d %H:%M:%S", "%m-%d %H:%M:%S,{ms}"],
    "month_first": ["%m/%d/%y %H:%M:%S:{ms}", "%m/%d/%Y, %H:%M:%S"],
    "twelve_hour": ["%m/%d/%Y, %I:%M:%S.{ms} %p", "%b %d, %Y %I:%M:%S %p", "%b %d, %I:%M:%S %p"],
    "epoch_ms": ["1664956976{ms}", "1593460123.{ms}"],
}
TIMES = st.datetimes(datetime(2021, 1, 1), datetime(2024, 1, 1)) | st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))


@pytest.mark.parametrize("layout", SHAPES)
@given(times=st.lists(TIMES, min_size=1, max_size=30), zone=st.sampled_from(["", "America/New_York", "Asia/Seoul"]))
def test_every_layout_is_read_as_the_parser_reads_it(layout: str, times: list[datetime], zone: str) -> None:
    labels = {"timezone": zone} if zone else {}
    stamps = [at.strftime(shape).format(ms=f"{at.microsecond // 1000:03d}") for at in times for shape in SHAPES[layout]]
    stamps += [f"{stamp[:-2]}61" for stamp in stamps[:3]] + [f"{stamp[:-2]}é" for stamp in stamps[:1]]
    ingested_us = np.full(len(stamps), to_us(TAKEN))
    read = StampReader(layout, zone_of(zone), bounds_of(labels), TAKEN).read(texts_of(stamps), ingested_us).tolist()
    record = Record("a", 0, "", ingested_at=TAKEN, labels=labels)
    for stamp, at_us in zip(stamps, read, strict=True):
        assert at_us in (NO_TIME, _told(*stamp_of(record, stamp, layout))), stamp
    if zone == "":
        assert NO_TIME not in (at_us for stamp, at_us in zip(stamps, read, strict=True) if not stamp.endswith(("61", "é")))


def _told(at: datetime | None, misdated: bool) -> int:
    return to_us(at) if at is not None else MISDATED if misdated else UNDATED


FLOATS = st.floats(1.5e9, 1.7e9) | st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-3, 1e-3)
SIZES = ((-(2**63), 2**63 - 1), (0, 2**53), (15 * 10**8, 17 * 10**8), (15 * 10**11, 17 * 10**11), (15 * 10**17, 17 * 10**17))
EPOCHS = (FLOATS | st.floats(-2e12, 2e12), st.one_of([st.integers(low, high) for low, high in SIZES]))


@pytest.mark.parametrize("type_", [pa.float64(), pa.int64()], ids=str)
@given(data=st.data(), earliest=st.sampled_from(["", "1950-01-01T00:00:00+00:00"]))
def test_numbers_are_read_as_those_of_documents(type_: pa.DataType, data: st.DataObject, earliest: str) -> None:
    numbers = data.draw(st.lists(EPOCHS[pa.types.is_integer(type_)], min_size=1, max_size=30))
    labels = {EARLIEST_LABEL: earliest} if earliest else {}
    ingested_us = np.full(len(numbers), to_us(TAKEN))
    read = StampReader("epoch_ms", UTC, bounds_of(labels)).read(pa.array(numbers, type_), ingested_us).tolist()
    record = Record("a", 0, "", ingested_at=TAKEN, labels=labels)
    for number, at_us in zip(numbers, read, strict=True):
        assert at_us == _told(*stamp_of(record, epoch_text(number), "epoch_ms")), number


@pytest.mark.parametrize("near", ["2024-07-16", ""])
@pytest.mark.parametrize("taken", [datetime(2026, 11, 27, tzinfo=UTC), None])
def test_a_stamp_without_a_year_gets_the_one_that_the_parser_gives_it(near: str, taken: datetime | None) -> None:
    stamp, labels = "0716 06:25:28.912203", {NEAR_LABEL: near} if near else {}
    chunk = Chunk("s", 0, f"F{stamp} 1 a.go:9] boom\n".encode(), 1, taken, labels)
    at_us = read_stamps(lines_of([chunk]), np.array([0]), np.array([0]), [labels], pa.array([stamp]), "month_day")
    at, _ = stamp_of(Record("s", 0, "", ingested_at=taken, labels=labels), stamp, "month_day")
    assert at_us.tolist() == [NO_TIME if at is None else to_us(at)]
