"""Elasticsearch and OpenSearch as a source of log lines and as a receiver of incidents.

Imports the model, errors, ports, codec, secrets, and the modules shared by all carriers of documents. The package
elasticsearch, an extra, is imported when a source or receiver is opened.
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
    """Return the source for `settings`: the fields of ElasticsearchSource, as JSON. Spark's workers call this too.

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
