"""Risks of consumer groups: what nobody reads, and what is deleted before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from engine.model.incidents import RenderedStep
from engine.model.phrases import lasting
from engine.risks.cluster import AuditedCluster, AuditedGroup, AuditedTopic, GroupLag
from engine.risks.risk import GROUP, Risk, set_topic, tool

_WITHOUT_MEMBERS = ("Empty", "Dead")


def behind_retention(cluster: AuditedCluster) -> Iterator[Risk]:
    """Groups whose oldest unread record is older than half of what its topic keeps, or is deleted already."""
    for group in cluster.groups.values():
        for name in sorted({lag.topic for lag in group.lags}):
            topic = cluster.topics.get(name)
            lags = [lag for lag in group.lags if lag.topic == name and (lag.is_lost or lag.unread_since is not None)]
            if topic is None or not lags or not topic.deletes_records:
                continue
            kept_ms = cluster.retention_ms(topic)
            if kept_ms is not None:
                yield _behind(cluster, group, topic, lags, kept_ms)
            elif any(lag.is_lost for lag in lags):
                yield _cut_off(group, topic)


def _behind(cluster: AuditedCluster, group: AuditedGroup, topic: AuditedTopic, lags: Sequence[GroupLag], kept_ms: int) -> Risk:
    is_lost = any(lag.is_lost for lag in lags)
    since = min((lag.unread_since for lag in lags if lag.unread_since is not None), default=None)
    age = cluster.at - since if since is not None and cluster.at is not None else None
    kept = timedelta(milliseconds=kept_ms)
    longer_ms = max(2 * kept_ms, round(4 * age.total_seconds()) * 1000 if age is not None else 0)
    state = (
        "has lost records that were deleted before it read them"
        if is_lost
        else f"has not read a record that is more than {lasting(age)} old"
        if age is not None
        else "is behind"
    )
    return Risk(
        "retention-below-lag",
        "critical" if is_lost else "high",
        GROUP,
        group.name,
        f"Group {group.name} {state}; topic {topic.name} keeps records for {lasting(kept)}, partition {_numbers(lags)}",
        "What is older than that is deleted, read or not; the group then goes on behind the gap, or by auto.offset.reset.",
        (
            set_topic(
                cluster,
                topic.name,
                "retention.ms",
                longer_ms,
                f"Keep records for {lasting(timedelta(milliseconds=longer_ms))} until the group has caught up",
            ),
        ),
        f"The topic needs up to {longer_ms / kept_ms:.0f} times the disk; what is deleted already does not come back.",
    )


def _cut_off(group: AuditedGroup, topic: AuditedTopic) -> Risk:
    """Return the risk of a group that has lost records of a topic that deletes nothing by age."""
    return Risk(
        "retention-below-lag",
        "critical",
        GROUP,
        group.name,
        f"Group {group.name} has lost records of topic {topic.name}: they were deleted before it read them",
        "The topic deletes by size (retention.bytes), or somebody deleted them; the group goes on behind the gap, or by"
        " auto.offset.reset.",
        (),
        "Nothing brings them back; more disk (retention.bytes), or a faster group, keeps it from happening again.",
    )


def without_members(cluster: AuditedCluster) -> Iterator[Risk]:
    """Groups without members that are behind, unless two observations show that nothing more is written, or that consumers
    without a membership (assign() instead of subscribe(), as Flink's) commit offsets."""
    for group in cluster.groups.values():
        if (
            group.state not in _WITHOUT_MEMBERS
            or not group.lag
            or not _grows(group)
            or any(lag.has_moved for lag in group.lags)
        ):
            continue
        topics = sorted({lag.topic for lag in group.lags if lag.lag})
        growth = sum((lag.lag or 0) - lag.earlier for lag in group.lags if lag.earlier is not None)
        grown = f", {growth:,} more than when it was first asked" if growth > 0 else ""
        look = RenderedStep(
            do="See its offsets twice, some minutes apart: if they move, a consumer reads with assign(). If not, start its"
            " consumers again, or have its owner confirm that nobody needs it",
            where="client",
            run=tool(cluster, "kafka-consumer-groups.sh", "--describe", "--group", group.name),
        )
        yield Risk(
            "group-without-members",
            "medium",
            GROUP,
            group.name,
            f"Group {group.name} has no members and has not read {group.lag:,} records of {', '.join(topics)}{grown}",
            "If nobody reads for it, what it has not read is deleted by retention, and its offsets expire after"
            " offsets.retention.minutes. Consumers that read with assign(), as Flink's do, are no members either.",
            (look,),
            "Nothing: the command shows the offsets. --delete would remove them, and kafka-consumer-groups.sh does so under a"
            " consumer with assign() too: it then begins by auto.offset.reset, with records lost or read twice.",
        )


def _grows(group: AuditedGroup) -> bool:
    """Whether the lag of a group grows: not known for sure of a group whose lag is known once."""
    twice = [lag for lag in group.lags if lag.lag is not None and lag.earlier is not None]
    return not twice or any((lag.lag or 0) > (lag.earlier or 0) for lag in twice)


def _numbers(lags: Sequence[GroupLag]) -> str:
    more = " ..." if len(lags) > 10 else ""
    return ", ".join(str(lag.partition) for lag in lags[:10]) + more
