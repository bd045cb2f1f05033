"""Whatever writers, refreshes, failures, rollovers and deletions do between two looks: every document once, or said lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.elasticsearch import open_source, paging
from connectors.elasticsearch import source as source_module
from connectors.elasticsearch.cluster import SearchCluster
from tests.servers.batches import Reader
from tests.unit.connectors.elasticsearch.search_model import SearchModel

ACTIONS = (
    *("write",) * 6,
    *("finish", "refresh", "read", "read", "read a little", "read again", "forget"),
    *("update", "remove", "roll over", "delete oldest", "make anew", "fail"),
)


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
        self.reader.max_lines = None
        self.reader.batch()

    def read_a_little(self) -> None:
        self.reader.max_lines = self.chance.randrange(1, 8)
        self.reader.batch()

    def read_again(self) -> None:
        """Die between the pages of a batch and its checkpoint: it is planned, read in part, and then planned again."""
        source = self.reader.source
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

    def _shards(self) -> list[object]:  # type: ignore[type-arg]
        return [shard for index in self.model.all.values() for shard in index.shards]  # type: ignore[return-value]

    def end(self) -> None:
        for shard in self._shards():
            shard.under_way.clear()  # type: ignore[attr-defined]
        self.reader.max_lines = None
        for _ in range(3):
            self.reader.batch()


@contextmanager
def history(shards: int, chance: Random) -> Iterator[History]:
    model = SearchModel(shards)
    source_module._MEMORIES.clear()
    with patch.object(SearchCluster, "of", lambda _: model), patch.object(paging, "FIRST_PAGE", 3):
        yield History(model, chance)


@settings(deadline=None)
@given(st.integers(1, 3), st.lists(st.sampled_from(ACTIONS), max_size=60), st.randoms(use_true_random=False))
def test_every_document_is_read_once_or_said_to_be_lost(shards: int, actions: list[str], chance: Random) -> None:
    with history(shards, chance) as one:
        for action in actions:
            one.do(action)
        one.end()
        read = Counter(json.loads(line.value)["message"] for line in one.reader.raw())
        there = {message for index in one.model.all.values() for shard in index.shards for _, _, message in shard.documents()}
    assert there - one.revealed <= set(read), "missed"
    forgot = "forget" in actions or "update" in actions or "remove" in actions
    assert forgot or max(read.values(), default=1) == 1, "twice"
    assert not one.taken_back & set(read), "what was taken back was never said"
    assert one.reader.lost or set(actions) & {"delete oldest", "make anew"} or one.reader.contiguous()


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
