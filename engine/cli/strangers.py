"""Divides the sources of a scan into collections that can have nothing to do with each other: other clusters, other weeks.

Correlation joins what happens to one cluster, so logs of strangers in one folder would cause each other's incidents. They are
told apart only where that is sure: by cluster ids that the lines name, and by pauses in which none of them has a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from engine.model.records import Progress, parent_id
from engine.ports import Chunk

APART = timedelta(days=7)  # without a line of any source: longer than any rule looks back
MOST_IDS = 4  # of a source
MOST_SIGHTINGS = 64  # of a source
MOST_SHOWN = 6  # collections in a sentence
_SIGNS = (b"luster ID", b"luster id", b"lusterId", b"luster-id", b"luster.id")
_ID = re.compile(rb"luster[ .-]?[iI][dD](?:[ :=]|Some\()+([A-Za-z0-9_-]{22})(?![\w-])")  # a UUID in base64, as Kafka writes it


class SourceTraces(Struct, frozen=True):
    """What shows to which collection a source belongs. `first` and `last`: of its events, None when none has a time;
    `clusters`: the ids of clusters that its lines name."""

    source: str
    first: datetime | None = None
    last: datetime | None = None
    clusters: frozenset[str] = frozenset()

    @property
    def folders(self) -> Sequence[PurePath]:
        """The folders that hold the source, the innermost first."""
        return tuple(PurePath(self.source).parents)


class LogCollection(Struct, frozen=True):
    """Sources that may have to do with each other, and the time of their events."""

    name: str
    sources: tuple[str, ...]
    first: datetime | None = None


def cluster_ids(data: bytes, most: int = MOST_SIGHTINGS) -> Iterator[str]:
    """Yield the cluster ids that the first `most` lines of `data` name that have one."""
    for sign in _SIGNS:
        at = data.find(sign)
        for _ in range(most):
            if at < 0:
                break
            if (match := _ID.match(data, at)) is not None:
                yield match[1].decode("ascii")
            at = data.find(sign, at + 1)


def collections_of(traces: Iterable[SourceTraces]) -> tuple[LogCollection, ...]:
    """Return the collections, by the time of their first event; one when nothing shows that any sources are strangers."""
    all_traces = sorted(traces, key=lambda trace: trace.source)
    groups = [group for cluster in _by_cluster(all_traces) for group in _by_time(cluster)]
    groups.sort(key=lambda group: (_first(group) is None, _first(group) or datetime.max, group[0].source))
    names = _names(groups)
    return tuple(
        LogCollection(name, tuple(trace.source for trace in group), _first(group))
        for name, group in zip(names, groups, strict=True)
    )


def labelled(items: Iterable[Chunk | Progress], collections: Iterable[LogCollection]) -> Iterator[Chunk | Progress]:
    """Yield `items` with the name of its collection as the label `cluster` of each chunk."""
    name_by_source = {source: collection.name for collection in collections for source in collection.sources}
    for item in items:
        name = name_by_source.get(parent_id(item.source_id))
        if isinstance(item, Chunk) and name is not None:
            yield replace(item, labels={**item.labels, "cluster": name})
        else:
            yield item


def sentence_about(collections: Sequence[LogCollection]) -> str:
    """Return the note that collections were judged apart, and how to have it otherwise."""
    names = [collection.name for collection in collections[:MOST_SHOWN]]
    more = f" and {len(collections) - MOST_SHOWN} more" if len(collections) > MOST_SHOWN else ""
    return (
        f"judged apart, as they name other clusters or are more than {APART.days} days apart: {', '.join(names)}{more}; "
        "if they are one cluster, scan with --label cluster=NAME"
    )


def _by_cluster(traces: Sequence[SourceTraces]) -> list[list[SourceTraces]]:
    """Return the sources by the clusters that they name. One that names none belongs to those of the nearest folder that has
    any; if these are several, it may be of any, so they stay together."""
    return _grouped(traces, {trace.source: trace.clusters for trace in traces if trace.clusters}, joins=True)


def _by_time(traces: Sequence[SourceTraces]) -> list[list[SourceTraces]]:
    """Return the sources by the pauses in which none has a line. One without times has no time to be joined by: it is put to
    those of the nearest folder, the earliest if there are several."""
    dated = sorted((t.first, t.last, t.source) for t in traces if t.first is not None and t.last is not None)
    periods: dict[str, frozenset[str]] = {}
    end: datetime | None = None
    period = ""
    for first, last, source in dated:
        if end is None or first - end > APART:
            period = first.isoformat()
        periods[source] = frozenset((period,))
        end = last if end is None else max(end, last)
    return _grouped(traces, periods, joins=False)


def _grouped(traces: Sequence[SourceTraces], marks: Mapping[str, frozenset[str]], *, joins: bool) -> list[list[SourceTraces]]:
    """Return the sources in groups that share a mark.

    Args:
        marks: the marks by source. A source without any has those of all sources of the nearest folder that has marked ones.
        joins: whether several marks that a source has in this way join their groups; else the first one counts.
    """
    below: dict[PurePath, set[str]] = {}  # the marks of all sources below a folder
    for trace in traces:
        for folder in trace.folders if trace.source in marks else ():
            below.setdefault(folder, set()).update(marks[trace.source])
    groups: list[tuple[set[str], list[SourceTraces]]] = []
    for trace in traces:
        own = set(marks.get(trace.source, ()))
        if not own:
            nearest = next((below[folder] for folder in trace.folders if folder in below), {""})
            own = set(nearest if joins else sorted(nearest)[:1])
        sharing = [group for group in groups if group[0] & own]
        others = [group for group in groups if not group[0] & own]
        members = [member for _, group_members in sharing for member in group_members]
        groups = [*others, (own.union(*(marks_ for marks_, _ in sharing)), [*members, trace])]
    return [sorted(group, key=lambda trace: trace.source) for _, group in groups]


def _first(group: Iterable[SourceTraces]) -> datetime | None:
    return min((trace.first for trace in group if trace.first is not None), default=None)


def _names(groups: Sequence[Sequence[SourceTraces]]) -> list[str]:
    """Return a unique name for each group: its folder where no other group has sources in it, else its cluster or its day."""
    names: list[str] = []
    for group in groups:
        others = [trace for other in groups if other is not group for trace in other]
        folder = _own_folder(group, others)
        ids = {id_ for trace in group for id_ in trace.clusters}
        first = _first(group)
        name = folder or (min(ids) if len(ids) == 1 else "") or (f"{first:%Y-%m-%d}" if first is not None else "other")
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _own_folder(group: Sequence[SourceTraces], others: Sequence[SourceTraces]) -> str:
    """Return the name of the outermost folder that holds all sources of `group` and none of `others`; empty without one."""
    common = set(group[0].folders).intersection(*(trace.folders for trace in group))
    own = common.difference(*(trace.folders for trace in others))
    return min(own, key=lambda folder: len(folder.parts)).name if own else ""
