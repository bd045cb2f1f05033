"""A Kafka cluster as a source (`type: kafka-cluster`): its brokers, topics and groups, asked for with an admin client.

Imports the model, errors, codec, secrets, and the modules shared by all that ask. The package kafka-python is imported when a
source is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from connectors.kafka_cluster.options import check_option
from connectors.kafka_cluster.printing import ClusterInventory
from engine.asking import AskingSource
from engine.codec import made
from engine.errors import RuntimeMissing

if TYPE_CHECKING:
    from connectors.kafka_cluster.admin import ClusterAsker

__all__ = ["ClusterInventory", "check_label", "check_option", "look", "open_source", "survey"]


def open_source(settings: Mapping[str, Any]) -> AskingSource[ClusterInventory]:
    """Return the source for `settings`, as JSON: `connection` (the fields of a KafkaEndpoint), and the fields of an
    AskingSource except those of its asker. Nothing is asked yet. Spark's workers call this too.

    Raises RuntimeMissing when the package kafka-python is not installed.
    """
    asker = _asker(settings)
    options = {name: value for name, value in settings.items() if name != "connection"}
    return AskingSource(asker, f"kafka-cluster/{asker.resource.partition(',')[0].strip()}", **options)


def look(settings: Mapping[str, Any]) -> tuple[ClusterInventory, tuple[str, ...]]:
    """Ask once; return what there is, and sentences about missing rights. Raises SourceError when nothing answers."""
    asker = _asker(settings)
    try:
        inventory, _ = asker.ask(None, whole=False)
    finally:
        asker.close()
    return inventory, asker.missing_rights


def survey(settings: Mapping[str, Any], now: datetime) -> tuple[Sequence[str], Sequence[str]]:
    """Ask once for everything that an audit judges; return the lines, and sentences about what cannot be seen. Raises
    SourceError when nothing answers."""
    asker = _asker(settings)
    try:
        return asker.audit(now)
    finally:
        asker.close()


def check_label(template: str) -> str | None:
    """Return an error text for the label `template`; None when it is valid."""
    return "a label of a server that is asked is fixed text" if "{" in template else None


def _asker(settings: Mapping[str, Any]) -> ClusterAsker:
    try:
        from connectors.kafka_cluster.admin import ClusterAsker, KafkaEndpoint  # noqa: PLC0415  (needs the extra)
    except ImportError as error:
        raise RuntimeMissing(
            f"a source of type kafka-cluster needs the package kafka-python ({error}); install it with:"
            " pip install 'tocsin[kafka]'"
        ) from error
    return ClusterAsker(made(settings["connection"], KafkaEndpoint))
