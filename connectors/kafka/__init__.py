"""A Kafka topic as a source of log lines, read with librdkafka. Imports the model, errors, ports and codec only.

The checks of a configuration (labels, options) are imported with the package; confluent-kafka, an extra, only when a source is
opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.kafka.labels import check_label
from connectors.kafka.options import check_option
from engine.errors import RuntimeMissing

if TYPE_CHECKING:
    from connectors.kafka.source import KafkaSource

__all__ = ["check_label", "check_option", "open_source"]


def open_source(settings: Mapping[str, Any]) -> KafkaSource:
    """Return the source for `settings`: the fields of KafkaSource, as JSON. Spark's workers call this too.

    Raises RuntimeMissing when confluent-kafka is not installed.
    """
    try:
        from connectors.kafka.source import KafkaSource  # noqa: PLC0415  (needs the extra)
    except ImportError as error:
        raise RuntimeMissing(
            f"a source of type kafka needs confluent-kafka ({error}); install it with: pip install 'tocsin[kafka]'"
        ) from error
    return KafkaSource(**settings)
