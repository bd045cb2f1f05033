"""What ElasticsearchSource relies on of a cluster, in memory, with what real ones do between two requests: an operation has its
number before it is done, a shard shows what it showed at its last refresh, a primary that fails takes back what only it had, a
snapshot that is restored over an index takes back what came since, and some searches are answered in part only.

Answers are those of SearchCluster's questions; tests/servers has the real one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Raw

from connectors.elasticsearch.answers import DocumentHit, SearchPage, _Hits
from connectors.elasticsearch.cluster import IndexGone
from connectors.elasticsearch.facts import IndexFacts, ServerVersion
from connectors.elasticsearch.offsets import Checkpoints
from engine.errors import SourceAway


@dataclass
class ModelShard:
    """Operations by number: the document's id and what it says, None when it is deleted. `under_way` are not done yet."""

    operations: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    under_way: set[int] = field(default_factory=set)
    shown: frozenset[int] = frozenset()
    behind: int = 0  # by how much the checkpoint that it tells is lower than it is, just after a failure
    highest: int = -1
    history: str = "aaaa"

    def put(self, id_: str, message: str | None, done: bool) -> int:
        self.highest += 1
        self.operations[self.highest] = (id_, message)
        if not done:
            self.under_way.add(self.highest)
        return self.highest

    @property
    def checkpoint(self) -> int:
        return min(self.under_way, default=self.highest + 1) - 1

    def refresh(self) -> None:
        self.shown = frozenset(self.operations) - self.under_way

    def fail(self) -> list[str]:
        """Lose the primary: what is above the checkpoint is taken back; return what that said."""
        taken_back = [number for number in self.operations if number > self.checkpoint]
        said = [message for number in taken_back if (message := self.operations.pop(number)[1]) is not None]
        self.under_way.clear()
        self.shown = frozenset(self.operations)
        self.highest = max(self.operations, default=-1)
        self.behind = min(3, self.highest + 1)
        return said

    def rewound(self, history: str) -> ModelShard:
        """Return it as it is once what it holds now was restored over what it will hold: all that is done is there."""
        done = {number: said for number, said in self.operations.items() if number not in self.under_way}
        return ModelShard(done, set(), frozenset(done), 0, max(done, default=-1), history)

    def documents(self) -> list[tuple[int, str, str]]:
        """Return what a search finds: the last shown operation of each document, by number."""
        last = {self.operations[number][0]: number for number in sorted(self.shown)}
        return [
            (n, id_, message) for n in sorted(last.values()) for id_, message in [self.operations[n]] if message is not None
        ]


@dataclass
class ModelIndex:
    name: str
    uuid: str
    created_ms: int
    shards: list[ModelShard]


class SearchModel:
    """A cluster with indices `logs-N`, of which the last is written to."""

    place = "model"

    def __init__(self, shards: int) -> None:
        self._count = shards
        self.all: dict[str, ModelIndex] = {}
        self.made = 0
        self.partial_answers = 0  # to the next searches
        self.snapshots: dict[str, list[ModelShard]] = {}  # by uuid of their index
        self.rollover()

    @property
    def written(self) -> ModelIndex:
        return list(self.all.values())[-1]

    def rollover(self) -> None:
        self.made += 1
        name = f"logs-{self.made}"
        shards = [ModelShard() for _ in range(self._count)]
        self.all[name] = ModelIndex(name, f"{self.made:06}uuid", self.made, shards)

    def anew(self) -> None:
        """Delete the index that is written to and make another one of its name."""
        name = self.written.name
        del self.all[name]
        self.made += 1
        shards = [ModelShard() for _ in range(self._count)]
        self.all[name] = ModelIndex(name, f"{self.made:06}uuid", self.made, shards)

    def snapshot(self) -> None:
        """Keep what the index holds that is written to."""
        self.made += 1
        self.snapshots[self.written.uuid] = [shard.rewound(f"h{self.made:03}") for shard in self.written.shards]

    def restore(self, same_history: bool = False) -> list[ModelShard]:
        """Put what was kept of the index that is written to over it; return its shards, none when nothing was kept."""
        shards = self.snapshots.pop(self.written.uuid, [])
        for number, shard in enumerate(shards):
            shard.history = self.written.shards[number].history if same_history else shard.history
        self.written.shards[: len(shards)] = shards
        return shards

    # --- questions -------------------------------------------------------------------------------------------------------

    def server(self) -> ServerVersion:
        return ServerVersion((9, 5, 3))

    def indices(self, pattern: str) -> tuple[IndexFacts, ...]:
        wanted = pattern.split(",")
        matching = [each for each in self.all.values() if any(fnmatchcase(each.name, one) for one in wanted)]
        return tuple(IndexFacts(each.name, each.uuid, self._count, each.created_ms) for each in matching)

    def named(self, names: Sequence[str]) -> list[IndexFacts]:
        return list(self.indices(",".join(names))) if names else []

    def checkpoints(self, pattern: str, known: Callable[[str, str], IndexFacts]) -> list[Checkpoints]:
        found = []
        for each in self.all.values():
            if not any(fnmatchcase(each.name, one) for one in pattern.split(",")):
                continue
            known(each.name, each.uuid)
            at = tuple(shard.checkpoint - shard.behind for shard in each.shards)
            for shard in each.shards:
                shard.behind = 0
            highest, histories = zip(*((shard.highest, shard.history) for shard in each.shards), strict=True)
            found.append(Checkpoints(each.name, each.uuid, at, each.created_ms, False, highest, histories))
        return found

    def refresh(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.all:
                for shard in self.all[name].shards:
                    shard.refresh()

    def shard_page(self, index: str, shard: int, body: Mapping[str, Any]) -> SearchPage:
        if self.partial_answers:
            self.partial_answers -= 1
            raise SourceAway(self.place, "answered in part only")
        if index not in self.all:
            raise IndexGone(f"no such index [{index}]")
        query = body["query"]
        bounds = (query["bool"]["filter"][0] if "bool" in query else query)["range"]["_seq_no"]
        documents = [each for each in self.all[index].shards[shard].documents() if bounds["gt"] < each[0] <= bounds["lte"]]
        hits = [self._hit(index, *each, *[None] * (len(body["sort"]) - 1)) for each in documents[: body["size"]]]
        return SearchPage(_Hits(hits))

    def count(self, pattern: str, query: Mapping[str, Any], most: int | bool = True) -> int:
        return sum(len(shard.documents()) for each in self.all.values() for shard in each.shards)

    def _hit(self, index: str, number: int, id_: str, message: str, *more: None) -> DocumentHit:
        source = json.dumps({"message": message, "host": "h", "file": "a.log"}).encode()
        return DocumentHit(index, id_, number, Raw(source), [number, *more])
