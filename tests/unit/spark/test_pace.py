"""A batch is bounded in bytes by the size that lines had lately."""

from __future__ import annotations

from pathlib import Path

from engine.spark.pace import FILE, LEAST_LINES, LinePace, line_bound, read_pace, updated_pace, write_pace
from engine.spark.slices import Scanned


def test_the_size_of_lines_follows_the_last_batches_by_halves() -> None:
    pace = updated_pace(LinePace(), [Scanned("t-0", 10, 1000), Scanned("t-0", 10, 3000), Scanned("t-1", 0, 0)])
    assert pace == LinePace({"t-0": 200.0})
    assert updated_pace(pace, [Scanned("t-0", 1, 400), Scanned("t-2", 2, 10)]) == LinePace({"t-0": 300.0, "t-2": 5.0})
    assert updated_pace(pace, []) == pace


def test_long_lines_make_a_batch_of_fewer_lines_and_short_ones_of_no_more_than_its_lines() -> None:
    pace = LinePace({"t-0": 1000.0, "t-1": 3000.0, "u-0": 10.0})
    assert line_bound(pace, ["t-0", "t-1"], 500_000, 100_000_000) == 50_000
    assert line_bound(pace, ["u-0"], 500_000, 100_000_000) == 500_000
    assert line_bound(pace, ["u-0"], None, 100_000_000) == 10_000_000
    assert line_bound(pace, ["t-1"], 500_000, 1) == LEAST_LINES


def test_without_a_bound_in_bytes_or_before_the_first_batch_lines_count_alone() -> None:
    assert line_bound(LinePace({"t-0": 1000.0}), ["t-0"], 7, None) == 7
    assert line_bound(LinePace(), ["t-0"], 7, 1) == 7
    assert line_bound(LinePace(), ["t-0"], None, 1) is None


def test_a_pace_is_read_as_it_was_written_and_a_damaged_one_counts_as_none(tmp_path: Path) -> None:
    assert read_pace(tmp_path) == LinePace()
    write_pace(LinePace({"t-0": 12.5}), tmp_path)
    assert read_pace(tmp_path) == LinePace({"t-0": 12.5})
    (tmp_path / FILE).write_text('{"line_bytes": {"t-0"')
    assert read_pace(tmp_path) == LinePace()
    write_pace(LinePace(), tmp_path / "gone")
