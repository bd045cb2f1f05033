"""Broker log lines made from a seed: the same seed gives the same bytes on every machine.

Mostly INFO lines in the wording of a ZooKeeper-based broker, some warnings with a stack trace, and `hits` of every thousand
events that a shipped rule knows. Made-up data flatters or slanders real logs: compare figures over the same corpus only.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

START = datetime(2022, 10, 5, 0, 0, 0)
TOPICS = ("orders", "payments", "account_event", "mail-out", "clicks.raw", "audit")

QUIET = (
    "INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in {n} milliseconds. "
    "(kafka.coordinator.group.GroupMetadataManager)",
    "INFO [Log partition={topic}-{p}, dir=/var/lib/kafka] Rolled new log segment at offset {n} in 3 ms. (kafka.log.Log)",
    "INFO [ProducerStateManager partition={topic}-{p}] Writing producer snapshot at offset {n} "
    "(kafka.log.ProducerStateManager)",
    "INFO [Log partition={topic}-{p}, dir=/var/lib/kafka] Deleting segment files LogSegment(baseOffset={n}, size=1073741703, "
    "lastModifiedTime=1664956976908, largestRecordTimestamp=Some(1664956976908)) (kafka.log.Log)",
    "INFO [GroupCoordinator 1]: Member consumer-{p}-{n} in group billing has left, removing it from the group "
    "(kafka.coordinator.group.GroupCoordinator)",
    "INFO [Partition {topic}-{p} broker=1] Expanding ISR from 1,2 to 1,2,3 (kafka.cluster.Partition)",
)
TRACE = (
    "WARN [SocketServer listenerType=ZK_BROKER, nodeId=1] Unexpected error from /10.0.0.{p}; closing connection "
    "(org.apache.kafka.common.network.Selector)\n"
    "java.io.IOException: Connection reset by peer\n"
    "\tat java.base/sun.nio.ch.FileDispatcherImpl.read0(Native Method)\n"
    "\tat org.apache.kafka.common.network.PlaintextTransportLayer.read(PlaintextTransportLayer.java:103)\n"
    "\tat org.apache.kafka.common.network.Selector.poll(Selector.java:481)"
)
HIT = (
    "ERROR [ReplicaManager broker=1] Error processing append operation on partition {topic}-{p} (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) is insufficient to satisfy "
    "the min.isr requirement of 2 for partition {topic}-{p}"
)


DENIED = (
    "INFO Principal = {principal} is Denied Operation = Describe from host = 10.16.19.213 on resource = Topic:LITERAL:orders "
    "for request = Metadata with resourceRefCount = 1 (kafka.authorizer.logger)"
)


def quiet(at: datetime, random: Random) -> str:
    """Return a line of no trouble, stamped `at` (UTC)."""
    return stamped(at, _filled(random.choice(QUIET), random))


def denied(at: datetime, principal: str) -> str:
    """Return the line of a client that is refused something: one match, for an entity that is the principal's alone."""
    return stamped(at, DENIED.format(principal=principal))


def stamped(at: datetime, text: str) -> str:
    """Return `text` as a broker prints it."""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] {text}"


def lines(count: int, seed: int = 1, hits: int = 5) -> Iterator[str]:
    """Yield at least `count` lines (the last event is whole), `hits` per thousand events being what a rule knows."""
    random, at, made = Random(seed), START, 0
    while made < count:
        at += timedelta(milliseconds=random.randrange(1, 400))
        for line in _event(random, hits).splitlines():
            yield line if line.startswith(("\t", "java.", "org.")) else stamped(at, line)
            made += 1


def _event(random: Random, hits: int) -> str:
    draw = random.randrange(1000)
    template = HIT if draw < hits else TRACE if draw < hits + 10 else random.choice(QUIET)
    return _filled(template, random)


def _filled(template: str, random: Random) -> str:
    return template.format(topic=random.choice(TOPICS), p=random.randrange(12), n=random.randrange(10**6))
