"""Windows of time: every moment is read once, and looked at again for as long as the overlap says."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.elasticsearch.facts import ServerVersion
from connectors.elasticsearch.timed import SWEEPS, TimeOffset, _tiebreak, is_due, planned, time_ranges

OVERLAP = 500
steps = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 100)), min_size=1, max_size=30)


@given(steps)
def test_every_moment_is_read_once_and_again_only_behind(history: list[tuple[int, int]]) -> None:
    """A step: by how much time goes on, and which part of what can be read is read (percent)."""
    offset, now = TimeOffset(1000, 1000, 1000), 1000
    first: list[tuple[int, int]] = []
    for on, part in history:
        now += on
        to = offset.to + (now - offset.to) * part // 100
        after = planned(offset, to, now, 0, OVERLAP)
        for each in time_ranges(offset, after):
            if each.again:
                assert each.start >= 1000
                assert each.end == offset.to
            else:
                first.append((each.start, each.end))
        assert after.place >= offset.place
        offset = after
    assert [start for start, _ in first[1:]] == [end for _, end in first[:-1]]
    assert not first or (first[0][0], first[-1][1]) == (1000, offset.to)


def test_what_comes_within_the_overlap_is_looked_at_after_it_has_come() -> None:
    """With a batch each 20 ms, every moment is looked at again after the overlap, less the pause between two looks."""
    offset, looked = TimeOffset(1000, 1000, 0), dict[int, int]()
    for now in range(1020, 3000, 20):
        after = planned(offset, now, now, 0, OVERLAP)
        for each in time_ranges(offset, after):
            looked |= dict.fromkeys(range(each.start, each.end), now)
        offset = after
    pause = OVERLAP // SWEEPS
    assert all(looked[at] >= at + OVERLAP - pause for at in range(1000, 2000))


def test_a_backlog_is_not_looked_at_twice() -> None:
    offset = TimeOffset(0, 0, 0)
    now = 100_000
    for to in range(1000, 90_000, 1000):
        assert not is_due(offset, now, OVERLAP)
        after = planned(offset, to, now, 5, OVERLAP)
        assert [each.again for each in time_ranges(offset, after)] == [False]
        offset = after


def test_opensearch_tells_documents_of_one_time_apart_in_its_own_way() -> None:
    assert _tiebreak(ServerVersion((7, 17, 0))) == ["_shard_doc"]
    assert _tiebreak(ServerVersion((3, 3, 0), is_opensearch=True)) == ["_shard_doc"]
    assert _tiebreak(ServerVersion((2, 19, 0), is_opensearch=True)) == [{"_id": "asc"}]
