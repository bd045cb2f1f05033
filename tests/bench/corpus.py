"""Broker log lines made from a seed: the same seed gives the same bytes on every machine.

The wording and the shares are those of a ZooKeeper-based broker that works: segments rolled and deleted, groups that rebalance,
fetchers that connect; a heartbeat of the group metadata manager every ten minutes of log time; some 15% of the lines continue a
stack trace or a config dump. `hits` is the share of events that a shipped rule tells something of. Made-up data flatters or
slanders real logs: compare figures over the same corpus only.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

START = datetime(2022, 10, 5, 0, 0, 0)
STEP_MS = 400  # between two events at most
HEARTBEAT_EVERY = timedelta(minutes=10)
TOPICS = ("orders", "payments", "account_event", "mail-out", "clicks.raw", "audit")
QUIET_RATE, JOB_RATE, COMMON_RATE, STORM_RATE = 0.0001, 0.005, 0.01, 0.3

HEARTBEAT = (
    "INFO [GroupMetadataManager brokerId=1] Removed 0 expired offsets in {ms} milliseconds. "
    "(kafka.coordinator.group.GroupMetadataManager)"
)
QUIET = (
    "INFO [UnifiedLog partition={topic}-{p}, dir=/var/lib/kafka] Rolled new log segment at offset {n} in {ms} ms. "
    "(kafka.log.UnifiedLog)",
    "INFO [ProducerStateManager partition={topic}-{p}] Wrote producer snapshot at offset {n} with {p} producer ids in {ms} ms. "
    "(kafka.log.ProducerStateManager)",
    "INFO [UnifiedLog partition={topic}-{p}, dir=/var/lib/kafka] Deleting segment LogSegment(baseOffset={n}, size=1073741703, "
    "lastModifiedTime=1664956976908, largestRecordTimestamp=Some(1664956976908)) due to retention time 604800000ms breach "
    "(kafka.log.UnifiedLog)",
    "INFO [UnifiedLog partition={topic}-{p}, dir=/var/lib/kafka] Incremented log start offset to {n} due to segment deletion "
    "(kafka.log.UnifiedLog)",
    "INFO Deleted log /var/lib/kafka/{topic}-{p}/{n:020d}.log.deleted. (kafka.log.LogSegment)",
    "INFO Deleted offset index /var/lib/kafka/{topic}-{p}/{n:020d}.index.deleted. (kafka.log.LogSegment)",
    "INFO Deleted time index /var/lib/kafka/{topic}-{p}/{n:020d}.timeindex.deleted. (kafka.log.LogSegment)",
    "INFO [GroupCoordinator 1]: Member[group.instance.id None, member.id consumer-billing-{p}-{n}] in group [billing-{p}] has "
    "left, removing it from the group (kafka.coordinator.group.GroupCoordinator)",
    "INFO [GroupCoordinator 1]: Assignment received from leader consumer-billing-{p}-{n} for group billing-{p} for generation "
    "{ms}. The group has {p} members, 0 of which are static. (kafka.coordinator.group.GroupCoordinator)",
    "INFO [ReplicaFetcherManager on broker 1] Added fetcher to broker 2 for partitions HashMap({topic}-{p} -> "
    "InitialFetchState(None,BrokerEndPoint(id=2, host=kafka-2:9092),{ms},{n})) (kafka.server.ReplicaFetcherManager)",
    "INFO [Log partition=__consumer_offsets-{p}, dir=/var/lib/kafka] Found deletable segments with base offsets [{n}] due to "
    "retention time 604800000ms breach (kafka.log.Log)",
    "INFO Cleaner 0: Beginning cleaning of log __consumer_offsets-{p} (kafka.log.LogCleaner)",
    "INFO Cleaner 0: Building offset map for __consumer_offsets-{p} for {ms} segments in offset range [{n}, 1048576). "
    "(kafka.log.LogCleaner)",
    "INFO [data-plane-kafka-request-handler-{p}]: Completed request for {topic}-{p} from 10.0.0.{ms}:40112; totalTime:{ms}.2 "
    "(kafka.request.logger)",
)
CONTINUED = (
    "WARN [SocketServer listenerType=ZK_BROKER, nodeId=1] Unexpected error from /10.0.0.{p}; closing connection "
    "(org.apache.kafka.common.network.Selector)\n"
    "java.io.IOException: Connection reset by peer\n"
    "\tat java.base/sun.nio.ch.FileDispatcherImpl.read0(Native Method)\n"
    "\tat java.base/sun.nio.ch.SocketChannelImpl.read(SocketChannelImpl.java:426)\n"
    "\tat org.apache.kafka.common.network.PlaintextTransportLayer.read(PlaintextTransportLayer.java:103)\n"
    "\tat org.apache.kafka.common.network.Selector.poll(Selector.java:481)",
    "INFO AdminClientConfig values: \n"
    "\tclient.dns.lookup = use_all_dns_ips\n"
    "\tclient.id = exporter-{p}\n"
    "\tmetric.reporters = []\n"
    "\trequest.timeout.ms = 30000\n"
    "\tsecurity.protocol = PLAINTEXT\n"
    " (org.apache.kafka.clients.admin.AdminClientConfig)",
)
IN_QUIET_LINES = frozenset(("segments in ",))  # signs of rules that stand in QUIET too
CONTINUED_EVENTS = 0.033  # of events: some 15% of the lines are below the first of theirs
DENIED = (
    "INFO Principal = {principal} is Denied Operation = Describe from host = 10.16.19.213 on resource = Topic:LITERAL:orders "
    "for request = Metadata with resourceRefCount = 1 (kafka.authorizer.logger)"
)
HITS = (
    "ERROR [ReplicaManager broker=1] Error processing append operation on partition {topic}-{p} (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) is insufficient to satisfy "
    "the min.isr requirement of 2 for partition {topic}-{p}",
    "INFO [Partition {topic}-{p} broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: {n}, endOffset: {n}). "
    "Out of sync replicas: (brokerId: 2, endOffset: {n}) (brokerId: 3, endOffset: {n}). (kafka.cluster.Partition)",
    "WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Connection to node 2 (kafka-2/10.0.0.2:9092) could not be "
    "established. Broker may not be available. (org.apache.kafka.clients.NetworkClient)",
    DENIED.replace("{principal}", "User:app-{p}"),
)


def quiet(at: datetime, random: Random) -> str:
    """Return a line of no trouble, stamped `at` (UTC)."""
    return stamped(at, filled(random.choice(QUIET), random))


def denied(at: datetime, principal: str) -> str:
    """Return the line of a client that is refused something: one match, for an entity that is the principal's alone."""
    return stamped(at, DENIED.format(principal=principal))


def stamped(at: datetime, text: str) -> str:
    """Return `text` as a broker prints it."""
    return f"{stamp(at)} {text}"


def stamp(at: datetime) -> str:
    """Return the stamp of a broker's line."""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]"


def lines(count: int, seed: int = 1, hits: float = QUIET_RATE) -> Iterator[str]:
    """Yield at least `count` lines (the last event is whole), the share `hits` of the events being what a rule knows."""
    random, at, beaten, made = Random(seed), START, START, 0
    while made < count:
        at += timedelta(milliseconds=random.randrange(1, STEP_MS))
        beats = at - beaten >= HEARTBEAT_EVERY
        beaten = at if beats else beaten
        text = filled(HEARTBEAT if beats else _template(random, hits), random)
        yield from stamped(at, text).split("\n")
        made += 1 + text.count("\n")


def _template(random: Random, hits: float) -> str:
    draw = random.random()
    if draw < hits:
        return random.choice(HITS)
    return random.choice(CONTINUED if draw < hits + CONTINUED_EVENTS else QUIET)


def filled(template: str, random: Random) -> str:
    """Return `template` with values in its holes."""
    topic, p, n = random.choice(TOPICS), random.randrange(12), random.randrange(10**6)
    return template.format(topic=topic, p=p, n=n, ms=random.randrange(1, 200))
