"""A histogram of times: merging is independent of order, and the number of cells is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from engine.correlate.time_histogram import MAX_CELLS, TimeHistogram, cells
from tests.building import at


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=300), st.data())
def test_cells_added_up_in_any_order_are_the_same_and_bounded(seconds: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(seconds))
    border = data.draw(st.integers(0, len(order)))
    parts = [cells(at(s) for s in part) for part in (order[:border], order[border:])]
    together = TimeHistogram()
    for part in parts:
        together.merge(part)
    assert together == cells(at(s) for s in seconds)
    assert len(together.counts) <= MAX_CELLS
    assert sum(count for _, _, count in together.spans()) == len(seconds)
