"""Whatever writers, refreshes, failures, rollovers and deletions do between two looks: every document once, or said lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.elasticsearch import open_source, paging
from connectors.elasticsearch import source as source_module
from connectors.elasticsearch.cluster import SearchCluster
from engine.errors import DataLoss, SourceAway
from tests.servers.batches import Reader
from tests.unit.connectors.elasticsearch.search_model import SearchModel

ACTIONS = (
    *("write",) * 6,
    *("finish", "refresh", "read", "read", "read a little", "read again", "forget"),
    *("update", "remove", "roll over", "delete oldest", "make anew", "fail", "answer in part"),
    *("snapshot", "restore"),
)
REWINDING = ("write", "write", "finish", "read", "read a little", "snapshot", "restore")


class History:
    """Writers at work on a model, and somebody who reads it."""

    def __init__(self, model: SearchModel, chance: Random) -> None:
        self.model, self.chance = model, chance
        self.reader = Reader(open_source({"connection": {"urls": ["http://model"]}, "indices": "logs-*"}))
        self.said = 0
        self.taken_back: set[str] = set()
        self.revealed: set[str] = set()
        self.ids: dict[str, str] = {}  # of documents in the index that is written to

    def do(self, action: str) -> None:
        getattr(self, action.replace(" ", "_"))()

    def write(self) -> None:
        for _ in range(self.chance.randrange(1, 9)):
            self.said += 1
            self.chance.choice(self.model.written.shards).put(f"d{self.said}", f"{self.said}", self.chance.random() < 0.7)

    def finish(self) -> None:
        for shard in self._shards():
            for number in list(shard.under_way):
                if self.chance.random() < 0.6:
                    shard.under_way.discard(number)

    def refresh(self) -> None:
        self.chance.choice(self._shards()).refresh()

    def read(self) -> None:
        self._read(None)

    def read_a_little(self) -> None:
        self._read(self.chance.randrange(1, 8))

    def _read(self, most: int | None) -> None:
        self.reader.max_lines = most
        count = len(self.reader.batches)
        try:
            self.reader.batch()
        except SourceAway:  # in the middle of a batch, of which nothing counts then
            del self.reader.batches[count:]

    def read_again(self) -> None:
        """Die between the pages of a batch and its checkpoint: it is planned, read in part, and then planned again."""
        source = self.reader.source
        with suppress(SourceAway, DataLoss, ExceptionGroup):
            end = source.latest(self.reader.at, self.chance.choice([None, 3]))
            for slice_ in source.partitions(self.reader.at, json.loads(json.dumps(end))):
                chunks = source.chunks(slice_)
                for _ in range(self.chance.randrange(3)):
                    next(chunks, None)
                chunks.close()

    def forget(self) -> None:
        """Start again: what a process has in memory is gone."""
        source_module._MEMORIES.clear()

    def update(self) -> None:
        shard = self.chance.choice(self._shards())
        if shard.operations:
            id_, message = self.chance.choice(list(shard.operations.values()))
            self.said += 1
            shard.put(id_, self.chance.choice([message, f"{self.said}"]), True)

    def remove(self) -> None:
        shard = self.chance.choice(self._shards())
        if shard.operations:
            shard.put(self.chance.choice(list(shard.operations.values()))[0], None, True)

    def roll_over(self) -> None:
        self.model.rollover()

    def delete_oldest(self) -> None:
        if len(self.model.all) > 1:
            del self.model.all[next(iter(self.model.all))]

    def make_anew(self) -> None:
        self.model.anew()

    def fail(self) -> None:
        """Lose a primary. What only an operation that it took back had hidden shows again, under a number that was passed."""
        shard = self.chance.choice(self._shards())
        ids = {id_ for number, (id_, _) in shard.operations.items() if number > shard.checkpoint}  # type: ignore[attr-defined]
        taken_back = set(shard.fail())  # type: ignore[attr-defined]
        self.taken_back |= taken_back - {message for _, message in shard.operations.values()}  # type: ignore[attr-defined]
        self.revealed.update(message for _, id_, message in shard.documents() if id_ in ids)  # type: ignore[attr-defined]

    def answer_in_part(self) -> None:
        self.model.partial_answers = self.chance.randrange(1, 2 * paging.TRIES)

    def snapshot(self) -> None:
        self.model.snapshot()

    def restore(self) -> None:
        """Restore what was kept of the index that is written to; it is written to again before anybody looks."""
        restored = [message for shard in self.model.restore() for _, message in shard.operations.values()]
        self.taken_back -= set(restored)
        if restored:
            self.write()

    def _shards(self) -> list[object]:  # type: ignore[type-arg]
        return [shard for index in self.model.all.values() for shard in index.shards]  # type: ignore[return-value]

    def end(self) -> None:
        for shard in self._shards():
            shard.under_way.clear()  # type: ignore[attr-defined]
        self.model.partial_answers = 0
        for _ in range(3):
            self._read(None)


@contextmanager
def history(shards: int, chance: Random) -> Iterator[History]:
    model = SearchModel(shards)
    source_module._MEMORIES.clear()
    with patch.object(SearchCluster, "of", lambda _: model), patch.multiple(paging, FIRST_PAGE=3, RETRY_AFTER_S=0.0):
        yield History(model, chance)


histories = st.sampled_from((ACTIONS, REWINDING)).flatmap(lambda actions: st.lists(st.sampled_from(actions), max_size=60))


@settings(deadline=None)
@given(st.integers(1, 3), histories, st.randoms(use_true_random=False))
def test_every_document_is_read_once_or_said_to_be_lost(shards: int, actions: list[str], chance: Random) -> None:
    with history(shards, chance) as one:
        for action in actions:
            one.do(action)
        one.end()
        read = Counter(json.loads(line.value)["message"] for line in one.reader.raw())
        there = {message for index in one.model.all.values() for shard in index.shards for _, _, message in shard.documents()}
    assert there - one.revealed <= set(read), "missed"
    forgot = bool(set(actions) & {"forget", "update", "remove", "restore"})
    assert forgot or max(read.values(), default=1) == 1, "twice"
    assert not one.taken_back & set(read), "what was taken back was never said"
    assert one.reader.lost or set(actions) & {"delete oldest", "make anew", "restore"} or one.reader.contiguous()


def test_nothing_that_was_written_is_neither_read_nor_lost() -> None:
    """Numbers of operations: those of the lines read, and of the losses, are all that there were."""
    with history(2, Random(5)) as one:
        for _ in range(40):
            one.write()
            one.finish()
        one.read_a_little()
        one.roll_over()
        one.read_a_little()
        one.write()
        for shard in one._shards():
            shard.under_way.clear()  # type: ignore[attr-defined]
        one.read_a_little()
        one.delete_oldest()
        one.end()
        lost = sum(loss.lost_to - loss.lost_from for loss in one.reader.lost)
    assert lost > 0
    assert lost + len(one.reader.raw()) == one.said


def test_a_shard_that_is_rewound_while_a_batch_is_read_is_read_anew_and_its_range_is_lost() -> None:
    with history(1, Random(5)) as one:
        (shard,) = one._shards()
        for number in range(10):
            shard.put(f"d{number}", f"{number}", True)  # type: ignore[attr-defined]
        one.snapshot()
        for number in range(10, 20):
            shard.put(f"d{number}", f"{number}", True)  # type: ignore[attr-defined]
        pages, whole = iter(range(2)), one.model.shard_page

        def page(*arguments: object) -> object:
            if next(pages, None) == 1:
                one.restore()
            return whole(*arguments)  # type: ignore[arg-type]

        with patch.object(one.model, "shard_page", page):
            one.end()
        read = {json.loads(line.value)["message"] for line in one.reader.raw()}
        there = {message for shard in one._shards() for _, _, message in shard.documents()}  # type: ignore[attr-defined]
    assert there <= read
    ((source_id, lost_from, lost_to),) = [(each.source_id, each.lost_from, each.lost_to) for each in one.reader.lost]
    assert (source_id, lost_from, lost_to) == ("logs-1[0]", 0, 20)
    assert "rewound" in one.reader.lost[0].why
