"""A risk: what may break later, why, and the commands that take it away."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from engine.codec import dumps
from engine.model.incidents import RenderedStep
from engine.model.placeholders import FILE_OF_COMMANDS
from engine.risks.cluster import AuditedCluster, AuditedConnector, AuditedTopic

CLUSTER, TOPIC, GROUP, CONNECTOR, BROKER = "cluster", "topic", "group", "connector", "broker"  # kinds of subjects
COPIES = 3  # replicas that a topic should have, if there are as many brokers
_PATCH_SINCE = (3, 8)  # KIP-477


class Risk(Struct, frozen=True):
    """Something that works now and may break.

    Attributes:
        check: the id of the check that has found it.
        kind, subject: what has it: a topic, group, connector or broker by name, or the cluster.
        what: one sentence about the present state, with its values.
        why: what it may lead to.
        fix: steps with the exact commands; `changes` tells what these change, and for whom.
    """

    check: str
    severity: str
    kind: str
    subject: str
    what: str
    why: str
    fix: tuple[RenderedStep, ...]
    changes: str


def tool(cluster: AuditedCluster, name: str, *arguments: str) -> str:
    """Return a command of one of Kafka's tools as a line for a POSIX shell."""
    words = [shlex.quote(word) for word in arguments]
    sign_in = ["--command-config", FILE_OF_COMMANDS] if cluster.tls else []
    bootstrap = shlex.quote(cluster.bootstrap) if cluster.bootstrap else "${bootstrap:?}"
    return " ".join((name, "--bootstrap-server", bootstrap, *sign_in, *words))


def set_topic(cluster: AuditedCluster, topic: str, setting: str, value: object, do: str) -> RenderedStep:
    """Return the step that sets a setting of a topic."""
    return _configured(cluster, ("--entity-type", "topics", "--entity-name", topic), setting, value, do, "topic")


def set_brokers(cluster: AuditedCluster, setting: str, value: object, do: str) -> RenderedStep:
    """Return the step that sets a setting of all brokers while they run."""
    return _configured(cluster, ("--entity-type", "brokers", "--entity-default"), setting, value, do, "broker")


def _configured(cluster: AuditedCluster, of: Sequence[str], setting: str, value: object, do: str, where: str) -> RenderedStep:
    run = tool(cluster, "kafka-configs.sh", "--alter", *of, "--add-config", f"{setting}={value}")
    return RenderedStep(do=do, where=where, run=run, changes_state=True)


def reassign(
    cluster: AuditedCluster, topic: AuditedTopic, replicas: Mapping[int, Sequence[int]], do: str
) -> tuple[RenderedStep, RenderedStep]:
    """Return the step that gives the partitions of a topic these replicas, by number, and the step that waits for its end: the
    brokers copy in the background, and the new replicas count at once while they are not in sync yet."""
    moves = [{"topic": topic.name, "partition": number, "replicas": ids} for number, ids in replicas.items()]
    name = f"reassign-{topic.name}.json"
    command = ("kafka-reassign-partitions.sh", "--reassignment-json-file", name)
    execute = RenderedStep(
        do=do,
        where="topic",
        file={name: dumps({"version": 1, "partitions": moves})},
        run=tool(cluster, *command, "--execute"),
        changes_state=True,
    )
    verify = RenderedStep(
        do="Repeat this until it says completed of every partition; only then go on",
        where="topic",
        run=tool(cluster, *command, "--verify"),
    )
    return execute, verify


def more_copies(cluster: AuditedCluster, topic: AuditedTopic) -> tuple[RenderedStep, ...]:
    """Return the steps that give every partition of a topic COPIES replicas, in different racks as far as there are some; none
    when there are too few brokers for more than it has."""
    wanted = min(COPIES, len(cluster.live_brokers))
    if wanted <= topic.copies:
        return ()
    replicas = {p.number: spread(cluster, p.replicas, max(wanted, len(p.replicas)), p.number) for p in topic.partitions}
    do = f"Give it {wanted} replicas. The list names the present ones too: naming only new ones takes them away"
    return reassign(cluster, topic, replicas, do)


def spread(cluster: AuditedCluster, present: Sequence[int], wanted: int, turn: int) -> list[int]:
    """Return `wanted` brokers: those of `present` first, then others that are not fenced, of racks that have none yet
    before the rest.

    Args:
        turn: where the choice among equal brokers begins, so that partitions differ.
    """
    chosen, racks = list(present), cluster.racks()
    others = [id_ for id_ in cluster.live_brokers if id_ not in chosen]
    others = others[turn % len(others) :] + others[: turn % len(others)] if others else []
    while others and len(chosen) < wanted:
        used = {racks.get(id_) for id_ in chosen}
        best = next((id_ for id_ in others if racks.get(id_) not in used), others[0])
        chosen.append(best)
        others.remove(best)
    return chosen


def set_connector(cluster: AuditedCluster, connector: AuditedConnector, settings: Mapping[str, str], do: str) -> RenderedStep:
    """Return the step that sets settings of a connector and leaves its others as they are."""
    url = f"{cluster.connect_url.rstrip('/') or '${connect_url:?}'}/connectors/{_escaped(connector.name)}/config"
    place = shlex.quote(url) if cluster.connect_url else url
    data = shlex.quote(dumps(dict(settings)))
    header = "-H 'Content-Type: application/json'"
    run = f"curl -sS --fail -X PATCH {header} --data {data} {place}"
    if not _may_patch(cluster):  # PUT replaces all settings, so the present ones are read first
        merged = shlex.quote(f". + {dumps(dict(settings))}")
        run = f"curl -sS --fail {place} | jq {merged} | curl -sS --fail -X PUT {header} --data @- {place}"
    return RenderedStep(do=do, where="connector", run=run, changes_state=True)


def _may_patch(cluster: AuditedCluster) -> bool:
    versions = [tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) for version in cluster.workers.values()]
    return bool(versions) and min(versions) >= _PATCH_SINCE


def _escaped(name: str) -> str:
    return quote(name, safe="")
