"""The requests to a cluster, one call of the client each; every failure is an error with a sentence.

The client's own methods are used where it has one; the point in time of OpenSearch is the same request at another address.
Answers are decoded from their bytes (connectors/elasticsearch/answers); the documents in them are not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from elastic_transport import JsonSerializer
from msgspec import Struct

from connectors.elasticsearch.answers import (
    PitAnswer,
    RootAnswer,
    SearchPage,
    SettingsAnswer,
    ShardCopy,
    StatsAnswer,
)
from connectors.elasticsearch.connection import (
    ApiError,
    ElasticsearchConnection,
    TransportError,
    open_client,
    source_error,
)
from connectors.elasticsearch.facts import IndexFacts, ServerVersion, index_facts
from connectors.elasticsearch.offsets import Checkpoints
from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing, UsageError

ANSWER_S = 30.0
# while no node answers, other sources of the job wait for at most a quarter of the time:
AWAY_ANSWER_S = 1.0
REST_S = 3.0
PIT_KEEP_ALIVE = "2m"
NAMES_AT_ONCE = 50  # names of indices in one address, whose length is bounded
_OF_SHARDS = (
    "seq_no.global_checkpoint",
    "seq_no.max_seq_no",
    "routing.primary",
    "routing.state",
    "commit.user_data.history_uuid",
)
_STATS = ",".join(("indices.*.uuid", *(f"indices.*.shards.*.{name}" for name in _OF_SHARDS)))
_SERVERLESS = "serverless"
# errors of an index and of a search after which a later request may succeed
_PASSING = frozenset(("index_closed_exception", "task_cancelled_exception"))
_PLAIN = {"accept": "application/json"}

T = TypeVar("T")

_CLUSTERS: dict[tuple[int, str], SearchCluster] = {}


class IndexGone(SourceMissing):
    """An index does not exist any more."""


class PitLost(SourceError):
    """A point in time does not exist any more."""


class _NodeOutage(Struct, frozen=True):
    why: SourceError
    rests_until: float  # by the monotonic clock


class _RawJson(JsonSerializer):
    """Leaves answers undecoded, except errors, which the client itself reads."""

    def json_loads(self, data: bytes) -> Any:
        return json.loads(data) if data.startswith(b'{"error"') else data


class SearchCluster:
    """A cluster of Elasticsearch or OpenSearch; it is connected at the first request.

    Every request raises SourceAway when no node answers (without another try until REST_S after the last one), SourceDenied
    when it is not allowed, and SourceError for other errors of the server.
    """

    def __init__(self, connection: ElasticsearchConnection) -> None:
        self.place = connection.place
        self._connection = connection
        self._connect()
        self._outage: _NodeOutage | None = None
        self._server: ServerVersion | None = None

    @staticmethod
    def of(settings: Mapping[str, Any]) -> SearchCluster:
        """Return the one SearchCluster of this process for the fields of an ElasticsearchConnection."""
        key = os.getpid(), json.dumps(dict(settings), sort_keys=True)
        if key not in _CLUSTERS:
            _CLUSTERS[key] = SearchCluster(msgspec.convert(dict(settings), ElasticsearchConnection))
        return _CLUSTERS[key]

    def server(self) -> ServerVersion:
        """Return the version of the server, from the first answer."""
        if self._server is None:
            version = self._answer(RootAnswer, lambda client: client.info()).version
            numbers = tuple(int(part) for part in version.number.partition("-")[0].split(".") if part.isdigit())
            self._server = ServerVersion(numbers, version.distribution == "opensearch", version.build_flavor == _SERVERLESS)
        return self._server

    def indices(self, pattern: str) -> tuple[IndexFacts, ...]:
        """Return the concrete indices that `pattern` matches, sorted by name. `pattern`: a comma list of names, aliases, data
        streams and patterns."""
        answer = self._answer(
            SettingsAnswer,
            lambda client: client.indices.get_settings(
                index=pattern, flat_settings=True, expand_wildcards=["open", "closed"], ignore_unavailable=True
            ),
        )
        return tuple(index_facts(name, answer[name].settings) for name in sorted(answer))

    def named(self, names: Sequence[str]) -> list[IndexFacts]:
        """Return the existing ones of these concrete indices."""
        return [index for batch in batched(names) for index in self.indices(",".join(batch))]

    def checkpoints(self, pattern: str, facts_of: Callable[[str, str], IndexFacts]) -> list[Checkpoints]:
        """Return the global checkpoints of the primaries of every open index.

        Args:
            facts_of: returns the facts about an index, by name and uuid.
        """
        path = f"/{quote(pattern, safe=',*')}/_stats/docs"  # the client's own method does not allow a missing index
        parameters = {"level": "shards", "ignore_unavailable": "true", "filter_path": _STATS}
        answer = self._answer(
            StatsAnswer, lambda client: client.perform_request("GET", path, params=parameters, headers=_PLAIN)
        )
        facts_and_stats = [(facts_of(name, stats.uuid), stats) for name, stats in answer.indices.items()]
        return [_checkpoints(index, stats.primaries(index.shards)) for index, stats in facts_and_stats]

    def refresh(self, names: Sequence[str]) -> None:
        """Refresh these indices, so that all their documents can be searched. Raises SourceAway when a copy fails."""
        for batch in batched(names):
            self._refresh(batch)

    def _refresh(self, names: Sequence[str]) -> None:
        answer = self._answer(SearchPage, lambda client: client.indices.refresh(index=names, ignore_unavailable=True))
        if answer.is_partial:
            raise SourceAway(self.place, f"Elasticsearch at {self.place} could not make new documents visible: {answer.why}")

    def shard_page(self, index: str, shard: int, body: Mapping[str, Any]) -> SearchPage:
        """Return a page of one shard. Raises SourceAway when the answer is partial, IndexGone when the index does not exist any
        more."""
        only = {"preference": f"_shards:{shard}", "allow_partial_search_results": False}
        return self._whole(lambda client: client.search(index=index, **body, **only))

    def page(self, body: Mapping[str, Any], index: str | None = None, answer_s: float | None = None) -> SearchPage:
        """Return a page of all shards of `index`, or, without one, of the point in time in `body`, within `answer_s` (None: the
        time of every request). Raises SourceAway when the answer is partial or late, PitLost when the point in time does not
        exist any more."""
        if index is None:
            return self._whole(lambda client: client.search(**body))
        whole = {"ignore_unavailable": True, "allow_partial_search_results": False}
        return self._whole(lambda client: client.search(index=index, **body, **whole), answer_s)

    def _whole(self, request: Callable[[Any], Any], answer_s: float | None = None) -> SearchPage:
        page = self._answer(SearchPage, request, answer_s)
        if page.is_partial:
            raise SourceAway(self.place, f"Elasticsearch at {self.place} has answered in part only: {page.why}")
        return page

    def count(self, pattern: str, query: Mapping[str, Any], most: int | bool = True) -> int:
        """Return the number of matching documents, at most about `most`; True: the exact number."""
        answer = self._answer(
            dict[str, Any],
            lambda client: client.search(
                index=pattern, query=query, size=0, track_total_hits=most, ignore_unavailable=True, filter_path="hits.total"
            ),
        )
        total = answer.get("hits", {}).get("total", 0)
        return int(total["value"] if isinstance(total, dict) else total)

    def open_pit(self, pattern: str) -> str:
        """Open a point in time over the indices that `pattern` matches now, and return its id."""
        if self.server().is_opensearch:
            path, parameters = f"/{quote(pattern, safe=',*')}/_search/point_in_time", {"keep_alive": PIT_KEEP_ALIVE}
            return self._answer(
                PitAnswer, lambda client: client.perform_request("POST", path, params=parameters, headers=_PLAIN)
            ).pit_id
        return self._answer(
            PitAnswer,
            lambda client: client.open_point_in_time(index=pattern, keep_alive=PIT_KEEP_ALIVE, ignore_unavailable=True),
        ).id

    def close_pit(self, pit: str) -> None:
        """Close a point in time; errors are ignored."""
        try:
            if self.server().is_opensearch:
                self._client.perform_request(
                    "DELETE",
                    "/_search/point_in_time",
                    headers={**_PLAIN, "content-type": "application/json"},
                    body={"pit_id": [pit]},
                )
            else:
                self._client.close_point_in_time(id=pit)
        except (ApiError, TransportError):
            return

    def _answer(self, kind: type[T], request: Callable[[Any], Any], answer_s: float | None = None) -> T:
        """Return the decoded answer to `request`, which gets the client; it waits for `answer_s` (None: ANSWER_S)."""
        if self._outage is not None and time.monotonic() < self._outage.rests_until:
            raise self._outage.why.with_traceback(None)
        patience_s = AWAY_ANSWER_S if self._outage else answer_s
        client = self._client if patience_s is None else self._client.options(request_timeout=patience_s)
        try:
            answer = request(client).body
        except (ApiError, TransportError) as error:
            raise self._refusal(error) from None
        self._outage = None
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, TypeError):
            raise SourceError(f"what answers at {self.place} is not Elasticsearch: {_beginning(answer)}") from None

    def _connect(self) -> None:
        self._client = open_client(self._connection, ANSWER_S, serializers={JsonSerializer.mimetype: _RawJson()})

    def _refusal(self, error: Exception) -> SourceError:
        refusal = source_error(error, self.place)
        if isinstance(refusal, SourceDenied):
            with suppress(UsageError):  # read a replaced secret again; a missing one may come back
                self._connect()
        if isinstance(refusal, SourceAway) and isinstance(error, TransportError):
            self._outage = _NodeOutage(refusal, time.monotonic() + REST_S)
        if isinstance(error, ApiError) and isinstance(error.body, dict):
            return _by_type(_types(error.body), refusal, self.place)
        return refusal


def _checkpoints(index: IndexFacts, primaries: Sequence[ShardCopy | None]) -> Checkpoints:
    numbers = [None if copy is None else copy.seq_no for copy in primaries]
    return Checkpoints(
        index.name,
        index.uuid,
        tuple(None if number is None else number.global_checkpoint for number in numbers),
        index.created_ms,
        index.is_copy,
        tuple(None if number is None else number.max_seq_no for number in numbers),
        tuple("" if copy is None else copy.commit.user_data.history_uuid for copy in primaries),
    )


def _types(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the types of an error and of its root causes."""
    error = body.get("error")
    causes = [error, *error.get("root_cause", ())] if isinstance(error, dict) else []
    return frozenset(str(cause.get("type")) for cause in causes if isinstance(cause, dict))


def _by_type(types: frozenset[str], refusal: SourceError, place: str) -> SourceError:
    if "index_not_found_exception" in types:
        return IndexGone(str(refusal))
    if types & _PASSING:
        return SourceAway(place, str(refusal))
    if "search_context_missing_exception" in types:
        return PitLost(str(refusal))
    return refusal


def batched(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """Divide names into parts that fit into one address."""
    return [names[at : at + NAMES_AT_ONCE] for at in range(0, len(names), NAMES_AT_ONCE)]


def _beginning(answer: Any) -> str:
    return repr(answer if isinstance(answer, bytes | str) else type(answer).__name__)[:80]
