"""How a scan tells what was read by what."""

from __future__ import annotations

from engine.cli.how_read import reading_cost
from engine.columns.bounded import ReadingCost


def test_little_input_is_read_one_by_one() -> None:
    assert list(reading_cost(ReadingCost(7))) == ["7 lines read one by one: columns begin at 512 KiB"]


def test_reasons_come_with_their_numbers() -> None:
    cost = ReadingCost(0, 2000, 900, 100, {"a stamp out of bounds": 60, "lines below no header": 40}, 1, 50, 7, 2_500_000)
    assert list(reading_cost(cost)) == [
        "2,000 lines read in columns: 900 events decided by them, 100 (10.00%) by the reference",
        "  60: a stamp out of bounds",
        "  40: lines below no header",
        "  1 block read by the reference as columns raised an error; --audit shows the input",
        "50 texts that differ in more than digits; 7 bear a match or an error; 2.5 MB",
    ]
