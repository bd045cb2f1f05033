"""The offsets of earlier runs, and what they mean for the sources that are configured now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from engine.codec import loads
from engine.ports import Offset
from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.fence import QUERY
from engine.spark.plans import planned
from engine.spark.stalls import Stall


class ConfiguredSource(Struct, frozen=True):
    """A source by the name of its offset; `has_start`: the configuration says where a first run starts."""

    name: str
    has_start: bool = False


class PlannedOffsets(Struct, frozen=True):
    """The offsets of the last planned batch by the name of the source, and what could not be read then."""

    sources: Mapping[str, Offset] = {}
    stalls: tuple[Stall, ...] = ()


def planned_offsets(checkpoint: Path) -> PlannedOffsets:
    """Return the end offsets of the last planned batch; empty before the first run, and for a checkpoint that cannot be read,
    which Spark reports."""
    query = LocalCheckpoint(checkpoint / QUERY)
    try:
        *_, offsets = (query.text(f"offsets/{planned(query)}") or "").splitlines()
        return loads(offsets, PlannedOffsets)
    except (OSError, ValueError, msgspec.MsgspecError):
        return PlannedOffsets()


def offsets_in(checkpoint: Path) -> Mapping[str, Offset]:
    """Return the offsets of `planned_offsets` by the name of the source."""
    return planned_offsets(checkpoint).sources


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
