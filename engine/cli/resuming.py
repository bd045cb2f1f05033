"""The offsets of earlier runs, and what they mean for the sources that are configured now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from engine.ports import Offset
from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.fence import QUERY
from engine.spark.plans import planned


class ConfiguredSource(Struct, frozen=True):
    """A source by the name of its offset; `has_start`: the configuration says where a first run starts."""

    name: str
    has_start: bool = False


def offsets_in(checkpoint: Path) -> Mapping[str, Offset]:
    """Return the end offset of the last planned batch, by the name of the source; empty before the first run, and for a
    checkpoint that cannot be read, which Spark reports."""
    query = LocalCheckpoint(checkpoint / QUERY)
    try:
        *_, offsets = (query.text(f"offsets/{planned(query)}") or "").splitlines()
        sources: Mapping[str, Offset] = json.loads(offsets)["sources"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return sources


def resumed(sources: Sequence[ConfiguredSource], offsets: Mapping[str, Offset]) -> list[str]:
    """Return sentences about sources that earlier runs read: a `start` that has no effect any more, and a source that may be
    configured under another name now. Pure."""
    names = [source.name for source in sources]
    started = [source.name for source in sources if source.has_start and source.name in offsets]
    gone = [name for name in offsets if name not in names]
    added = [name for name in names if name not in offsets] if offsets else []
    sentences = []
    if started:
        sentences.append(f"`start` applies to a first run only; these continue where they ended: {_listed(started)}")
    if gone and added:
        sentences.append(
            f"new, and read from `start`: {_listed(added)}; not configured any more: {_listed(gone)}. If only an address or"
            " path has changed, write the old one again, or set `start` so that no lines are missed"
        )
    return sentences


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
