"""Elasticsearch and OpenSearch: log lines are read from them, incidents written into them. Imports the model, errors, ports,
codec, secrets, and what all carriers of documents share. The package elasticsearch, an extra, is imported when something is
opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.elasticsearch.labels import check_label
from engine.errors import RuntimeMissing

if TYPE_CHECKING:
    from connectors.elasticsearch.source import ElasticsearchSource

__all__ = ["check_label", "open_source"]


def open_source(settings: Mapping[str, Any]) -> ElasticsearchSource:
    """Return the source that `settings` (JSON: the fields of ElasticsearchSource) describe; called in Spark's workers too.

    Raises RuntimeMissing when the package elasticsearch is not installed.
    """
    try:
        from connectors.elasticsearch.source import ElasticsearchSource  # noqa: PLC0415  (needs the extra)
    except ImportError as error:
        raise RuntimeMissing(
            f"a source of type elasticsearch needs the package elasticsearch ({error}); install it with:"
            " pip install 'tocsin[elasticsearch]'"
        ) from error
    return ElasticsearchSource(**settings)
