"""How far shards are read: never backwards, nothing twice, what is gone is said, and small."""

import json

from hypothesis import given
from hypothesis import strategies as st

from connectors.elasticsearch.offsets import (
    Checkpoints,
    SequenceOffset,
    advanced,
    aligned,
    at_beginning,
    at_end,
    lost_operations,
    ranges,
    short,
    since,
)
from engine.codec import made, plain


def points(name: str, *at: int | None, uuid: str = "", **more: object) -> Checkpoints:
    return Checkpoints(name, uuid or f"uuid-of-{name}", at, **more)  # type: ignore[arg-type]


def ids(*now: Checkpoints) -> frozenset[str]:
    return frozenset(short(each.uuid) for each in now)


def test_a_batch_takes_its_share_of_older_indices_first() -> None:
    now = [points("b", 99, created_ms=2), points("a", 9, 29, created_ms=1)]
    start = at_beginning(now)
    one = advanced(start, now, ids(*now), 20)
    assert [(each.index, each.shard, each.after, each.to) for each in ranges(start, one)] == [("a", 0, -1, 4), ("a", 1, -1, 14)]
    two = advanced(one, now, ids(*now), 100)
    assert [(each.index, each.after, each.to) for each in ranges(one, two)] == [("a", 4, 9), ("a", 14, 29), ("b", -1, 79)]
    assert (two.place, two.behind) == (120, 20)


def test_an_index_that_was_not_known_is_read_from_its_beginning_and_a_copy_from_its_end() -> None:
    now = [points("a", 5), points("b", 3), points("restored-a", 5, is_copy=True)]
    start = at_end(now[:1])
    end = advanced(start, now, ids(*now))
    assert [(each.index, each.after, each.to) for each in ranges(start, end)] == [("b", -1, 3)]


def test_a_checkpoint_that_is_lower_for_a_moment_moves_nothing() -> None:
    start = at_end([points("a", 10)])
    for lower in (points("a", 7), points("a", None), points("a", -1)):
        assert advanced(start, [lower], ids(lower)) == start


def test_an_index_made_anew_is_another_one_and_the_rest_of_the_old_one_is_lost() -> None:
    old, new = points("a", 10, uuid="first-uuid-x"), points("a", 3, uuid="second-uuid-x")
    start = advanced(at_beginning([old]), [old], ids(old), 5)
    end = advanced(start, [new], ids(new))
    assert [(each.index, each.after, each.to) for each in lost_operations(start, end)] == [("a", 4, 10)]
    assert [(each.after, each.to) for each in ranges(start, end)] == [(-1, 3)]
    assert end.place == start.place + 6 + 4


def shard(at: int, highest: int | None = None, history: str = "first-uuid") -> Checkpoints:
    return points("a", at, uuid="uuid-of-a", highest=(at if highest is None else highest,), histories=(history,))


def test_a_shard_with_another_history_begins_anew_and_what_is_not_there_any_more_is_lost() -> None:
    start = advanced(at_beginning([shard(20)]), [shard(20)], ids(shard(20)), 10)
    restored = shard(14, history="second-uuid")
    end = advanced(start, [restored], ids(restored))
    assert [(each.after, each.to) for each in ranges(start, end)] == [(-1, 14)]
    assert [(each.after, each.to) for each in lost_operations(start, end)] == [(14, 20)]
    assert end.place == start.place + 15 + 6
    assert advanced(end, [restored], ids(restored)) == end


def test_a_shard_with_another_history_that_has_grown_beyond_what_was_read_begins_anew_in_parts() -> None:
    start = at_end([shard(9)])
    restored = shard(30, history="second-uuid")
    one = advanced(start, [restored], ids(restored), 10)
    two = advanced(one, [restored], ids(restored), 100)
    assert [(each.after, each.to) for each in (*ranges(start, one), *ranges(one, two))] == [(-1, 9), (9, 30)]
    assert lost_operations(start, one) == lost_operations(one, two) == []


def test_a_shard_whose_highest_number_was_read_already_and_is_higher_begins_anew() -> None:
    """A disk was set back to what it held: the history has its name still."""
    start, back = at_end([shard(9)]), shard(4)
    end = advanced(start, [back], ids(back))
    assert [(each.after, each.to) for each in ranges(start, end)] == [(-1, 4)]
    empty = advanced(start, [shard(-1)], ids(shard(-1)))
    assert (ranges(start, empty), empty.indices[short("uuid-of-a")].at) == ([], (-1,))


def test_a_history_that_is_not_told_is_no_other_one() -> None:
    """Of an offset of an earlier version, and of a primary that does not say it now."""
    told, untold = shard(9), points("a", 9, uuid="uuid-of-a")
    for start in (at_end([untold]), made(plain({"indices": {short("uuid-of-a"): [[9]]}}), SequenceOffset)):
        end = advanced(start, [told], ids(told))
        assert (ranges(start, end), lost_operations(start, end), end.place) == ([], [], 0)
        away = advanced(end, [points("a", None, uuid="uuid-of-a")], ids(told))
        assert away == end
        assert ranges(end, advanced(away, [shard(9, history="second-uuid")], ids(told)))


def test_of_an_index_that_was_read_whole_nothing_is_lost() -> None:
    start = at_end([points("a", 10)])
    end = advanced(start, [], frozenset())
    assert (lost_operations(start, end), end.indices, end.place) == ([], {}, 0)


def test_what_is_away_and_still_there_keeps_its_place() -> None:
    here = points("a", 10)
    start = advanced(at_beginning([here]), [here], ids(here), 4)
    assert advanced(start, [], ids(here)) == start


def test_a_first_run_may_start_in_the_middle() -> None:
    now = [points("a", 10, 20, -1)]
    start = since(now, lambda _, shard: 15 if shard == 1 else None)
    assert start.indices[short("uuid-of-a")].at == (10, 14, -1)


def test_an_offset_holds_little_of_what_is_read_to_its_end() -> None:
    name = ".ds-logs-kafka.log-default-2026.11.26-{:06}"
    now = [points(name.format(n), 10**9, uuid=f"{n:022}", histories=(f"{n:022}"[::-1],)) for n in range(3000)]
    end = advanced(at_end(now), now, ids(*now))
    assert len(json.dumps(plain(end), separators=(",", ":"))) < 3000 * 41


histories = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=2, max_size=2), max_size=4),
        st.integers(1, 12) | st.none(),
    ),
    max_size=12,
)


@given(histories)
def test_every_operation_is_read_once_or_lost_once(history: list[tuple[dict[str, list[int]], int | None]]) -> None:
    """Indices grow, or go when a step does not name them; each step is planned, and passes through JSON."""
    offset, ends, generation = SequenceOffset(), dict[str, list[int]](), dict[str, int]()
    taken: dict[tuple[str, int], list[int]] = {}
    written: dict[tuple[str, int], int] = {}
    for grown, most in history:
        for name in [name for name in ends if name not in grown]:
            del ends[name]
            generation[name] = generation.get(name, 0) + 1
        for name, more in grown.items():
            ends[name] = [end + add for end, add in zip(ends.get(name, [-1, -1]), more, strict=True)]
        now = [points(name, *at, uuid=f"{name}{generation.get(name, 0)}") for name, at in ends.items()]
        after = made(json.loads(json.dumps(plain(advanced(offset, now, ids(*now), most)))), SequenceOffset)
        for each in [*ranges(offset, after)]:
            taken.setdefault((each.id, each.shard), []).extend(range(each.after + 1, each.to + 1))
        lost = {(short(id_), shard) for id_ in offset.indices if id_ not in after.indices for shard in (0, 1)}
        for each in lost_operations(offset, after):
            id_ = next(i for i, position in offset.indices.items() if i not in after.indices and position.name == each.index)
            taken.setdefault((id_, each.shard), []).extend(range(each.after + 1, each.to + 1))
        for id_, position in offset.indices.items():
            for shard in (0, 1):
                if (id_, shard) in lost:
                    written[id_, shard] = (position.ends or position.at)[shard]
        assert after.place - offset.place == sum(
            each.to - each.after for each in (*ranges(offset, after), *lost_operations(offset, after))
        )
        offset = after
    for id_, position in offset.indices.items():
        for shard, at in enumerate(position.at):
            written[id_, shard] = at
    assert {key: numbers for key, numbers in taken.items() if numbers} == {
        key: list(range(end + 1)) for key, end in written.items() if end >= 0
    }


def test_a_cut_through_several_shards_may_be_moved_but_never_to_nothing() -> None:
    now = [points("a", 99, 99), points("b", 9)]
    start = at_beginning(now)
    end = advanced(start, now, ids(*now), 100)
    assert [(each.shard, each.to) for each in ranges(start, end)] == [(0, 49), (1, 49)]
    moved = aligned(start, end, lambda _, planned: [planned[0] + 7, planned[1] - 7])
    assert [(each.shard, each.to) for each in ranges(start, moved)] == [(0, 56), (1, 42)]
    assert moved.place == end.place
    for unusable in (None, [-1, -1], [-5, -9]):
        assert aligned(start, end, lambda *_, cut=unusable: cut) == end  # type: ignore[misc]
    whole = aligned(start, end, lambda unread, _: [each.to for each in unread])
    assert whole.indices[short("uuid-of-a")].ends == ()
    assert whole.place == 200
