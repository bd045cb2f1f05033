"""Stamps read side by side are the times that the parser reads, and NO_TIME wherever it has to be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns.lines import texts_of
from engine.columns.stamps import NO_TIME, StampReader, to_us
from engine.model.records import Record
from engine.parse.stamps import bounds_of, stamp_of
from engine.parse.times import zone_of

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
TIMES = st.datetimes(datetime(2021, 1, 1), datetime(2024, 1, 1))


@pytest.mark.parametrize("layout", SHAPES)
@given(times=st.lists(TIMES, min_size=1, max_size=30), zone=st.sampled_from(["", "America/New_York", "Asia/Seoul"]))
def test_every_layout_is_read_as_the_parser_reads_it(layout: str, times: list[datetime], zone: str) -> None:
    labels = {"timezone": zone} if zone else {}
    stamps = [at.strftime(shape).format(ms=f"{at.microsecond // 1000:03d}") for at in times for shape in SHAPES[layout]]
    stamps += [f"{stamp[:-2]}61" for stamp in stamps[:3]]
    taken_us = np.full(len(stamps), to_us(TAKEN))
    read = StampReader(layout, zone_of(zone), bounds_of(labels), TAKEN).read(texts_of(stamps), taken_us).tolist()
    record = Record("a", 0, "", ingested_at=TAKEN, labels=labels)
    for stamp, at_us in zip(stamps, read, strict=True):
        at, _ = stamp_of(record, stamp, layout)
        assert at_us in (NO_TIME, at and to_us(at)), stamp
    if zone == "" and layout != "epoch_ms":
        assert sum(at_us != NO_TIME for at_us in read) >= sum(
            stamp_of(record, stamp, layout)[0] is not None for stamp in stamps
        )
