"""Risks of the cluster as a whole: settings of its brokers, its quorum, its versions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from engine.model.incidents import RenderedStep
from engine.risks.cluster import AuditedCluster, number
from engine.risks.risk import CLUSTER, Risk, set_brokers, tool
from engine.risks.topics import is_internal

_AUTO, _UNCLEAN = "auto.create.topics.enable", "unclean.leader.election.enable"
_FEW = 5  # names in a sentence
_MAY_DIFFER = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")  # null at brokers that set another of them


def created_by_use(cluster: AuditedCluster) -> Iterator[Risk]:
    """Brokers that create a topic when somebody uses its name."""
    brokers = [str(id_) for id_, value in cluster.of_brokers(_AUTO).items() if value == "true"]
    if not brokers:
        return
    copies = {number(value) for value in cluster.of_brokers("default.replication.factor").values()}
    parts = {number(value) for value in cluster.of_brokers("num.partitions").values()}
    alike = [
        topic.name
        for topic in cluster.topics.values()
        if not topic.settings and not is_internal(topic) and {topic.copies} == copies and {len(topic.partitions)} == parts
    ]
    seen = f"; with default settings, as if created so: {_names(alike)}" if alike else ""
    factor = f", with replication factor {_numbers(copies)}" if copies - {None} else ""
    step = RenderedStep(
        do="In server.properties of every broker; restart one after the other",
        where="broker",
        set={_AUTO: "false"},
        run=tool(cluster, "kafka-configs.sh", "--describe", "--entity-type", "brokers", "--entity-name", brokers[0], "--all"),
        changes_state=True,
    )
    yield Risk(
        "auto-created-topics",
        "medium",
        CLUSTER,
        cluster.name,
        f"Broker {', '.join(brokers)} creates a topic when a name is first used{factor}{seen}",
        "A name with a typing error becomes a topic, and topics come into being with settings that nobody chose.",
        (step,),
        "Clients that use a name that is no topic get UNKNOWN_TOPIC_OR_PARTITION. It is no setting that changes while a broker"
        " runs; the command only shows it.",
    )


def unclean_by_default(cluster: AuditedCluster) -> Iterator[Risk]:
    """Brokers that allow unclean leader elections for topics without a setting of their own."""
    brokers = [str(id_) for id_, value in cluster.of_brokers(_UNCLEAN).items() if value == "true"]
    if brokers:
        step = set_brokers(cluster, _UNCLEAN, "false", "Let only a replica that is in sync become leader")
        yield Risk(
            "unclean-election-by-default",
            "high",
            CLUSTER,
            cluster.name,
            f"Broker {', '.join(brokers)} has unclean.leader.election.enable=true, for all topics that do not set it",
            "When the replicas in sync are away, one that is behind becomes leader, and confirmed records are lost.",
            (step,),
            "Partitions wait for a replica that was in sync instead: they are away longer, and lose nothing.",
        )


def even_quorum(cluster: AuditedCluster) -> Iterator[Risk]:
    """A quorum with an even number of voters."""
    count = len(cluster.voters)
    if count and count % 2 == 0:
        ids = ", ".join(map(str, sorted(cluster.voters)))
        show = RenderedStep(
            do="See the voters, then add or remove one: add-controller and remove-controller of the same tool where"
            " kraft.version is 1, otherwise controller.quorum.voters of every node",
            where="controller",
            run=tool(cluster, "kafka-metadata-quorum.sh", "describe", "--status"),
        )
        yield Risk(
            "even-voters",
            "medium" if count > 2 else "high",
            CLUSTER,
            cluster.name,
            f"{count} controllers vote: {ids}",
            f"{count} voters bear the loss of {(count - 1) // 2}, no more than {count - 1} would, and any of them may be the"
            " one that is missing.",
            (show,),
            "Nothing yet: the command shows the voters and how far each is.",
        )


def versions_apart(cluster: AuditedCluster) -> Iterator[Risk]:
    """Brokers that take different versions of requests, or Connect workers of different versions."""
    protocols = {id_: broker.protocols for id_, broker in cluster.brokers.items() if broker.protocols}
    if len({tuple(sorted(of_one.items())) for of_one in protocols.values()}) > 1:
        step = RenderedStep(
            do="See what each broker takes, and finish the upgrade",
            where="broker",
            run=tool(cluster, "kafka-broker-api-versions.sh"),
        )
        yield Risk(
            "versions-apart",
            "low",
            CLUSTER,
            cluster.name,
            f"The brokers are of different versions: {_differing(protocols)}",
            "An upgrade that stops half way leaves features off, and clients meet different behaviour at different brokers.",
            (step,),
            "Nothing: the command shows the versions of requests by broker.",
        )
    if len(set(cluster.workers.values())) > 1:
        workers = ", ".join(f"{worker}: {version}" for worker, version in sorted(cluster.workers.items()))
        step = RenderedStep(
            do="See the version of each worker, and finish the upgrade", where="worker", run=_ask_workers(cluster)
        )
        yield Risk(
            "versions-apart",
            "low",
            CLUSTER,
            cluster.name,
            f"The Connect workers are of different versions: {workers}",
            "A connector behaves by the version of the worker that its tasks happen to run on.",
            (step,),
            "Nothing: the command shows the versions.",
        )


def settings_apart(cluster: AuditedCluster) -> Iterator[Risk]:
    """Settings that the brokers have different values of."""
    names = sorted({name for broker in cluster.brokers.values() for name in broker.settings} - set(_MAY_DIFFER))
    for name in names:
        values = cluster.of_brokers(name)
        if len(set(values.values())) > 1:
            lines = f"grep -F -e 'configs for broker' -e {shlex.quote(f' {name}=')}"
            step = RenderedStep(
                do="See each value and where it comes from, choose the right one, and give it to all brokers",
                where="broker",
                run=f"{tool(cluster, 'kafka-configs.sh', '--describe', '--entity-type', 'brokers', '--all')} | {lines}",
            )
            shown = ", ".join(f"{value} at broker {id_}" for id_, value in sorted(values.items()))
            yield Risk(
                "settings-apart",
                "low",
                CLUSTER,
                cluster.name,
                f"The brokers differ in {name}: {shown}",
                "What holds for a partition depends on the broker that leads it, and changes when leaders move.",
                (step,),
                "Nothing: the command shows the values. A value that is set while brokers run (--entity-default) overrides that"
                " of server.properties; a setting that a broker reads only when it starts is refused there.",
            )


def _differing(protocols: Mapping[int, Mapping[str, str]]) -> str:
    names = sorted({name for of_one in protocols.values() for name in of_one})
    apart = next(name for name in names if len({of_one.get(name) for of_one in protocols.values()}) > 1)
    values = ", ".join(f"{of_one.get(apart, 'not')} at broker {id_}" for id_, of_one in sorted(protocols.items()))
    return f"they take {apart} {values}"


def _ask_workers(cluster: AuditedCluster) -> str:
    return "; ".join(f"curl -sS http://{worker}/" for worker in sorted(cluster.workers))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{', '.join(names[:_FEW])}{more}"


def _numbers(values: set[int | None]) -> str:
    return " or ".join(str(value) for value in sorted(value for value in values if value is not None))
