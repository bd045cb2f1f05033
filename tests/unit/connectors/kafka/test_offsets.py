"""How far a batch reaches: every partition by its share, nothing read twice, nothing passed over in silence."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.offsets import OffsetRange, PartitionPosition, advanced, ranges, recreated

ends = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=4)


def test_everything_is_read_when_nothing_bounds_it_and_new_partitions_from_zero() -> None:
    before = {0: PartitionPosition(5, 7)}
    after = advanced(before, {0: 0, 1: 0}, {0: 9, 1: 3})
    assert after == {0: PartitionPosition(9, 9), 1: PartitionPosition(3, 3)}
    assert ranges(before, after) == [OffsetRange(0, 5, 9), OffsetRange(1, 0, 3)]


def test_a_lost_range_is_passed_in_one_batch() -> None:
    before = {0: PartitionPosition(10, 10)}
    after = advanced(before, {0: 900}, {0: 1000}, 10)
    assert ranges(before, after) == [OffsetRange(0, 10, 910)]


def test_a_log_that_ends_before_what_was_read_is_begun_again() -> None:
    before = {0: PartitionPosition(10, 10), 1: PartitionPosition(4, 4)}
    after = advanced(before, {0: 0, 1: 0}, {0: 3, 1: 4})
    assert ranges(before, after) == [OffsetRange(0, 0, 3)]
    assert [(lost.partition, lost.start, lost.end) for lost in recreated(before, after)] == [(0, 10, 10)]


def test_a_topic_of_another_id_is_begun_again_however_long_it_is_and_an_unknown_id_says_nothing() -> None:
    before = {0: PartitionPosition(10, 10, "old"), 1: PartitionPosition(0, 0, "old"), 2: PartitionPosition(4, 4)}
    after = advanced(before, {}, {0: 30, 1: 5, 2: 6}, None, "new")
    assert ranges(before, after) == [OffsetRange(0, 0, 30), OffsetRange(1, 0, 5), OffsetRange(2, 4, 6)]
    assert [(lost.partition, lost.start) for lost in recreated(before, after)] == [(0, 10)]
    assert recreated(after, advanced(after, {}, {0: 40, 1: 5, 2: 6})) == []


def test_a_topic_that_is_gone_stays_where_it_was() -> None:
    before = {0: PartitionPosition(10, 10)}
    assert advanced(before, {}, {}) == before


@given(ends, st.integers(1, 300))
def test_batches_come_to_the_end_and_cover_every_offset_once(end: dict[int, int], most: int) -> None:
    at: dict[int, PartitionPosition] = {}
    read: dict[int, int] = {}
    while (after := advanced(at, {}, end, most)) != at:
        found = ranges(at, after)
        assert sum(each.end - each.start for each in found) <= most + len(end)
        for each in found:
            assert each.start == read.get(each.partition, 0)
            read[each.partition] = each.end
        at = after
    assert {p: position.at for p, position in at.items()} == end
