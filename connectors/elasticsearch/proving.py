"""Put a line into an index that a source reads, as a document that its query selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from connectors.elasticsearch.connection import (
    ApiError,
    ElasticsearchConnection,
    TransportError,
    open_client,
    source_error,
)
from engine.errors import SourceError, SourceMissing
from engine.shipping import MESSAGE

MOST_TARGETS = 5
_TIME = "@timestamp"
_VALUES = {
    "term": "value",
    "match": "query",
    "match_phrase": "query",
    "prefix": "value",
}  # kind of query -> key of its long form
_KEYWORD = ".keyword"  # what a mapping that nobody wrote has beside each text


def put_document(
    connection: ElasticsearchConnection, pattern: str, id: str, at: str, line: str, query: Mapping[str, Any] | None
) -> str:
    """Create a document around `line` in a data stream, alias or index that `pattern` matches; return its name.

    The first that takes it does: data streams, then aliases, then indices, the last by name first.

    Args:
        at: the time of the document.
        query: what the source reads; None for all. The document gets the values that it asks for.

    Raises SourceError: SourceMissing when the pattern matches none; also when `query` does not select the document.
    """
    client = open_client(connection)
    try:
        names = _targets(client.indices.resolve_index(name=pattern))
        if not names:
            raise SourceMissing(f"{connection.place}: no index is called {pattern}")
        asked = {} if query is None else dict(_asked(query))
        shapes = [{**asked, _TIME: at, field: line} for field in MESSAGE]
        name, index = _created(client, names, shapes, id, refresh=query is not None)
        if query is not None and not _selects(client, index, id, query):
            with suppress(ApiError, TransportError):  # a right that a source does not need
                client.delete(index=index, id=id)
            raise SourceError(f"{connection.place}: the `query` of the source does not select a document of a proof in {name}")
        return name
    except (ApiError, TransportError) as error:
        raise source_error(error, connection.place) from None
    finally:
        client.close()


def _targets(resolved: Any) -> Sequence[str]:
    """Return the names to write to, in the order in which they are tried."""
    indices = [index["name"] for index in resolved.get("indices", ()) if "closed" not in index.get("attributes", ())]
    kinds = [[found["name"] for found in resolved.get(kind, ())] for kind in ("data_streams", "aliases")]
    members = [name for found in resolved.get("aliases", ()) for name in found.get("indices", ())]
    ordered = [name for names in (*kinds, indices, members) for name in sorted(names, reverse=True)]
    return list(dict.fromkeys(ordered))[:MOST_TARGETS]


def _created(
    client: Any, names: Sequence[str], shapes: Sequence[Mapping[str, Any]], id: str, *, refresh: bool
) -> tuple[str, str]:
    """Create the document in the first of `names` that takes it in one of `shapes`; return the name and the concrete index.

    Raises ApiError, that of the first attempt, when none takes it: a mapping may be strict, an alias may have no index to write
    to.
    """
    refused: ApiError | None = None
    for name, document in product(names, shapes):
        try:
            answer = client.index(index=name, id=id, op_type="create", document=document, refresh=refresh)
        except ApiError as error:
            if error.status_code != 400:
                raise
            refused = refused or error
        else:
            return name, str(answer["_index"])
    assert refused is not None
    raise refused


def _selects(client: Any, index: str, id: str, query: Mapping[str, Any]) -> bool:
    """Return whether `query` selects a document."""
    both = {"bool": {"filter": [{"ids": {"values": [id]}}, query]}}
    return bool(client.search(index=index, query=both, size=1)["hits"]["hits"])


def _asked(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields and values that documents of a query have, as far as it says so plainly."""
    for kind, inner in query.items():
        if kind in _VALUES and isinstance(inner, Mapping):
            for field, value in inner.items():
                yield _of(field, value.get(_VALUES[kind]) if isinstance(value, Mapping) else value)
        elif kind == "terms" and isinstance(inner, Mapping):
            yield from (_of(field, values[0]) for field, values in inner.items() if isinstance(values, list) and values)
        elif kind in ("bool", "constant_score") and isinstance(inner, Mapping):
            for clause in ("must", "filter"):
                clauses = inner.get(clause, ())
                for one in clauses if isinstance(clauses, list) else [clauses] if clauses else ():
                    yield from _asked(one)


def _of(field: str, value: Any) -> tuple[str, Any]:
    return field.removesuffix(_KEYWORD), value
