"""Judges a cluster: all checks, what is ignored and why, and what could not be judged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from engine.model.rules import SEVERITIES
from engine.risks import brokers, connectors, groups, topics
from engine.risks.cluster import AuditedCluster
from engine.risks.risk import CONNECTOR, GROUP, TOPIC, Risk

CHECKS: tuple[Callable[[AuditedCluster], Iterator[Risk]], ...] = (
    topics.one_replica,
    topics.internal_one_replica,
    topics.writes_to_one,
    topics.writes_refused,
    topics.unclean_election,
    topics.one_rack,
    brokers.created_by_use,
    brokers.unclean_by_default,
    brokers.even_quorum,
    brokers.versions_apart,
    brokers.settings_apart,
    groups.behind_retention,
    groups.without_members,
    connectors.tolerates_silently,
    connectors.larger_than_topic,
    connectors.smaller_than_topic,
    connectors.larger_than_replica_fetch,
    connectors.larger_than_sink_fetch,
    connectors.converters_contradict,
)
CHECK_IDS = (
    "auto-created-topics",
    "converters-contradict",
    "errors-tolerated-silently",
    "even-voters",
    "fetch-below-record",
    "group-without-members",
    "internal-topic-one-replica",
    "min-insync-impossible",
    "min-insync-worthless",
    "one-rack",
    "retention-below-lag",
    "settings-apart",
    "sizes-contradict",
    "topic-one-replica",
    "unclean-election",
    "unclean-election-by-default",
    "versions-apart",
)


class AcceptedRisk(Struct, frozen=True):
    """Risks that are accepted, and why: those of `checks` (empty: of all) whose subject fits a pattern of its kind. Without any
    pattern every subject fits."""

    reason: str
    checks: tuple[str, ...] = ()
    patterns: Mapping[str, tuple[str, ...]] = {}

    def covers(self, risk: Risk) -> bool:
        """Whether it accepts `risk`."""
        if self.checks and risk.check not in self.checks:
            return False
        wanted = self.patterns.get(risk.kind, ())
        return not self.patterns or any(fnmatchcase(risk.subject, pattern) for pattern in wanted)


class ClusterAudit(Struct, frozen=True):
    """The outcome of an audit. `risks` are in order: the worst first, then by check and subject. `accepted` holds each accepted
    risk with its reason; `unseen` what could not be judged."""

    cluster: AuditedCluster
    risks: tuple[Risk, ...]
    accepted: tuple[tuple[Risk, str], ...]
    unseen: tuple[str, ...]


def judged(cluster: AuditedCluster, accepted: Sequence[AcceptedRisk] = ()) -> ClusterAudit:
    """Return what is at risk in `cluster`."""
    risks = sorted((risk for check in CHECKS for risk in check(cluster)), key=_order)
    reasons = [(risk, next((entry.reason for entry in accepted if entry.covers(risk)), None)) for risk in risks]
    return ClusterAudit(
        cluster,
        tuple(risk for risk, reason in reasons if reason is None),
        tuple((risk, reason) for risk, reason in reasons if reason is not None),
        (*cluster.unseen, *_unseen(cluster)),
    )


def _order(risk: Risk) -> tuple[int, str, str, str]:
    return -SEVERITIES.index(risk.severity), risk.check, risk.kind, risk.subject


def _unseen(cluster: AuditedCluster) -> Iterator[str]:
    """Yield a sentence for each part that checks need and that is not known."""
    if not cluster.brokers:
        yield "no broker was seen, so nothing of brokers, topics and groups is judged"
        return
    mute = [str(id_) for id_, broker in cluster.brokers.items() if not broker.settings]
    if mute:
        yield (
            f"the settings of broker {', '.join(mute)} are not known (it is away, or the right DescribeConfigs on the cluster"
            " is missing), so they, and what topics take from them, are not judged"
        )
    for group in cluster.groups.values():
        if not group.state:
            yield (
                f"the state of group {group.name} is not known (brokers before 2.6 do not list it), so whether it has"
                " members is not judged"
            )
        if unknown := sum(lag.lag is None for lag in group.lags):
            yield f"the lag of group {group.name} is not known in {unknown} of {len(group.lags)} partitions"
    blind = [connector.name for connector in cluster.connectors.values() if connector.settings is None]
    if blind:
        yield (
            f"the settings of {len(blind)} connectors are not known, {blind[0]} among them, so their errors, converters and"
            " sizes are not judged"
        )


KINDS = {"topics": TOPIC, "groups": GROUP, "connectors": CONNECTOR}  # key of the configuration -> kind of subject
