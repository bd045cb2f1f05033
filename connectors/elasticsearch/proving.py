"""Put a document into an index that a source reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.elasticsearch.connection import (
    ApiError,
    ElasticsearchConnection,
    TransportError,
    open_client,
    source_error,
)
from engine.errors import SourceMissing


def put_document(connection: ElasticsearchConnection, pattern: str, id: str, document: Mapping[str, Any]) -> str:
    """Create `document` in the data stream, or else the last index by name, that `pattern` matches; return its name.

    Raises SourceError; SourceMissing when the pattern matches none.
    """
    client = open_client(connection)
    try:
        answer = client.indices.resolve_index(name=pattern)
        streams = sorted(stream["name"] for stream in answer.get("data_streams", ()))
        indices = sorted(index["name"] for index in answer.get("indices", ()) if "closed" not in index.get("attributes", ()))
        if not streams and not indices:
            raise SourceMissing(f"{connection.place}: no index is called {pattern}")
        name = (streams or indices)[-1]
        client.index(index=name, id=id, op_type="create", document=dict(document))
    except (ApiError, TransportError) as error:
        raise source_error(error, connection.place) from None
    finally:
        client.close()
    return str(name)
