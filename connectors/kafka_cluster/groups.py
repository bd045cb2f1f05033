"""Asks about consumer groups: members, and how far they are behind. Requests that only read.

DescribeGroups (each coordinator)     members of groups
OffsetFetch (each coordinator)        offsets that groups have committed
ListOffsets (each leader)             the ends of the partitions that they have committed offsets of
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, TypeVar

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError
from msgspec import Struct

from connectors.kafka_cluster.printing import TopicOffsets, member_row

AT_ONCE = 500  # groups, or resources, in one request
PATIENCE_S = 15.0  # with requests for ends, if some fail

K = TypeVar("K")
T = TypeVar("T")


class Coordinator(Struct, frozen=True):
    """The broker that coordinates a group, and the group's state, as it lists it."""

    broker: int
    state: str


def coordinators(client: Any, live: Sequence[int]) -> tuple[Mapping[str, Coordinator], bool]:
    """Return the coordinator of each group, and whether all brokers have an answer."""
    groups, complete = dict[str, Coordinator](), True
    for id_ in live:
        try:
            listed = client.list_groups([id_])
        except KafkaError:  # a coordinator that starts, or a broker that has just gone
            complete = False
        else:
            groups |= {group["group_id"]: Coordinator(id_, str(group.get("group_state", ""))) for group in listed}
    return groups, complete


def members(client: Any, groups: Mapping[str, Coordinator], addresses: Mapping[int, str]) -> Mapping[str, str]:
    """Return the row of each of `groups` that its coordinator describes, by id.

    Args:
        addresses: `host:port` of the brokers.
    """
    rows = dict[str, str]()
    for id_ in sorted({group.broker for group in groups.values()}):
        own = sorted(name for name, group in groups.items() if group.broker == id_)
        for names in _pages(own):
            answers = _by_halves(partial(client.describe_groups, group_coordinator_id=id_), names)
            for name, answer in answers.items():
                if answer.get("error") is None and answer["group_state"] != "Dead":  # a group of the new protocol is not found
                    rows[name] = member_row(name, answer, id_, addresses.get(id_, "-"), groups[name].state)
    return rows


def committed(client: Any, groups: Sequence[str]) -> Mapping[str, TopicOffsets]:
    """Return the offsets that each group has committed; groups that cannot be asked now have none."""
    return {
        group: {(place.topic, place.partition): commit.offset for place, commit in offsets.items() if commit.offset >= 0}
        for names in _pages(groups)
        for group, offsets in _by_halves(client.list_group_offsets, names).items()
    }


def ends(client: Any, places: Sequence[tuple[str, int]]) -> TopicOffsets:
    """Return the ends of partitions, which must have a leader; those that cannot be asked now have none."""

    def ask(partitions: list[TopicPartition]) -> Mapping[TopicPartition, Any]:
        answer: Mapping[TopicPartition, Any] = client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return answer

    partitions = [TopicPartition(*place) for place in places]
    answer = _by_halves(ask, partitions, time.monotonic() + PATIENCE_S) if partitions else {}
    return {(place.topic, place.partition): end.offset for place, end in answer.items()}


def _pages(names: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), AT_ONCE):
        yield list(names[at : at + AT_ONCE])


def _by_halves(ask: Callable[[list[K]], Mapping[K, T]], names: list[K], until_s: float = inf) -> Mapping[K, T]:
    """Return the answers about `names`. One name may fail all of a request, so it is asked again in halves: none after
    `until_s`, of the monotonic clock, because a leader that does not answer costs each of them a timeout."""
    if time.monotonic() >= until_s:
        return {}
    try:
        return ask(names)
    except (KafkaError, ValueError):  # the latter: members of another protocol, as the workers of Connect, are not understood
        if len(names) < 2:  # its coordinator starts, its leader has just changed, or it is gone
            return {}
        half = len(names) // 2
        return {**_by_halves(ask, names[:half], until_s), **_by_halves(ask, names[half:], until_s)}
