"""The features of a cluster (KIP-584) as `kafka-features.sh describe` prints them. Pure.

Source: org.apache.kafka.server.common.MetadataVersion of 3.9.2 and 4.3.1, whose values and feature levels these are;
org.apache.kafka.tools.FeatureCommand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

METADATA_VERSION = "metadata.version"
_PRINTED = (METADATA_VERSION, "kraft.version", "group.version")
_RELEASES = (  # minor release and how many levels it has, from level 1 on
    *(
        ("3.0", (1,)),
        ("3.1", (0,)),
        ("3.2", (0,)),
        ("3.3", (0, 1, 2, 3)),
        ("3.4", (0,)),
        ("3.5", (0, 1, 2)),
        ("3.6", (0, 1, 2)),
    ),
    *(
        ("3.7", (0, 1, 2, 3, 4)),
        ("3.8", (0,)),
        ("3.9", (0,)),
        ("4.0", (0, 1, 2, 3)),
        ("4.1", (0, 1)),
        ("4.2", (0, 1)),
        ("4.3", (0,)),
    ),
    ("4.4", (0,)),
)
METADATA_VERSIONS: Mapping[int, str] = dict(
    enumerate((f"{release}-IV{number}" for release, numbers in _RELEASES for number in numbers), 1)
)


def feature_rows(features: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the row of each finalized feature by name, in order, from what kafka-python's admin client answers."""
    return {
        name: "\t".join(
            (
                f"Feature: {name}",
                f"SupportedMinVersion: {_level(name, answer['supported'][0])}",
                f"SupportedMaxVersion: {_level(name, answer['supported'][1])}",
                f"FinalizedVersionLevel: {_level(name, answer['finalized'][1])}",
                f"Epoch: {answer.get('finalized_epoch')}",
            )
        )
        for name, answer in sorted(features.items())
        if name in _PRINTED and "finalized" in answer and "supported" in answer
    }


def _level(feature: str, level: int) -> str:
    return METADATA_VERSIONS.get(level, str(level)) if feature == METADATA_VERSION else str(level)
