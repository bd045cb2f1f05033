"""The answers of the server as types. The document of a hit is not decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct, field


class DocumentHit(Struct, frozen=True, gc=False):
    """One document: its index and id, its sequence number (-1 unless requested), and its JSON, empty when none is stored.
    `sort`: its sort values."""

    index: str = field(name="_index")
    id: str = field(name="_id")
    seq_no: int = field(name="_seq_no", default=-1)
    source: Raw = field(name="_source", default_factory=lambda: Raw(b""))
    sort: list[Any] = field(default_factory=list)


class _Hits(Struct, frozen=True):
    hits: list[DocumentHit] = field(default_factory=list)


class _Shards(Struct, frozen=True):
    failed: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)


class SearchPage(Struct, frozen=True):
    """The answer to a search."""

    hit_list: _Hits = field(name="hits", default_factory=_Hits)
    shards: _Shards = field(name="_shards", default_factory=_Shards)
    timed_out: bool = False
    pit_id: str = ""

    @property
    def hits(self) -> list[DocumentHit]:
        """The documents, in the order of the search."""
        return self.hit_list.hits

    @property
    def is_partial(self) -> bool:
        """Whether shards have not answered; such a page must not be used."""
        return self.timed_out or self.shards.failed > 0

    @property
    def why(self) -> str:
        """Why the page is partial, as a clause."""
        if self.timed_out:
            return "the search was ended by its time-out"
        reasons = [failure.get("reason", {}) for failure in self.shards.failures]
        reason = next((str(cause.get("reason") or cause.get("type")) for cause in reasons if isinstance(cause, dict)), "")
        return f"{self.shards.failed} shards have failed" + (f": {reason}" if reason else "")


class _SequenceNumbers(Struct, frozen=True):
    global_checkpoint: int = -1
    max_seq_no: int | None = None


class _Routing(Struct, frozen=True):
    primary: bool = False
    state: str = "STARTED"


class _UserData(Struct, frozen=True):
    history_uuid: str = ""


class _Commit(Struct, frozen=True):
    user_data: _UserData = field(default_factory=_UserData)


class ShardCopy(Struct, frozen=True):
    """What a copy of a shard says of its operations; `seq_no` None: it says nothing."""

    routing: _Routing = field(default_factory=_Routing)
    seq_no: _SequenceNumbers | None = None
    commit: _Commit = field(default_factory=_Commit)


_RECOVERING = "INITIALIZING"  # what such a copy says is not yet what it will have


class _IndexStats(Struct, frozen=True):
    uuid: str = ""
    shards: dict[str, list[ShardCopy]] = field(default_factory=dict)

    def primaries(self, count: int) -> list[ShardCopy | None]:
        """Return each of `count` primary shards, in order; None for a primary that no node has now."""
        primaries = {
            int(number): copy
            for number, copies in self.shards.items()
            for copy in copies
            if copy.routing.primary and copy.routing.state != _RECOVERING and copy.seq_no is not None
        }
        return [primaries.get(number) for number in range(count)]


class StatsAnswer(Struct, frozen=True):
    """The answer to a request for statistics by shard."""

    indices: dict[str, _IndexStats] = field(default_factory=dict)


class _IndexSettings(Struct, frozen=True):
    settings: dict[str, Any] = field(default_factory=dict)


SettingsAnswer = dict[str, _IndexSettings]


class _VersionAnswer(Struct, frozen=True):
    number: str = "0"
    distribution: str = ""
    build_flavor: str = ""


class RootAnswer(Struct, frozen=True):
    """The answer to a request for the root: the version."""

    version: _VersionAnswer = field(default_factory=_VersionAnswer)


class PitAnswer(Struct, frozen=True):
    """The answer to the opening of a point in time; Elasticsearch sets `id`, OpenSearch `pit_id`."""

    id: str = ""
    pit_id: str = ""


class FieldsAnswer(Struct, frozen=True):
    """The answer to a request for field capabilities: by field name, by type."""

    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
