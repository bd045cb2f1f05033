"""Faults of clients, and what they do that is no fault."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, TOPIC, Layout, Scene
from tests.servers.broker import free_ports
from tests.servers.secured import PASSWORD, USER

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_WRITES = {f"{part}.serializer": "org.apache.kafka.common.serialization.StringSerializer" for part in ("key", "value")}
_LEDGER = {"transactional.id": "ledger-tx", **_WRITES}
_SHORT_SESSION = {"session.timeout.ms": "8000", "heartbeat.interval.ms": "2000"}
_NEW_AND_SLOW = {"group.protocol": "consumer", "max.poll.interval.ms": "8000", "max.poll.records": "50"}
_ASSIGNOR, _ASSIGNORS = "partition.assignment.strategy", "org.apache.kafka.clients.consumer.{}Assignor"
_SOON_ROLLED_BACK = "\ntransaction.abort.timed.out.transaction.cleanup.interval.ms=2000\n"
_GUARDED = "\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS\n"


def record_too_large_client(on: Scene) -> None:
    on.orders.send("x" * 1_500_000)
    on.seen("RecordTooLargeException")
    on.runs()


def record_too_large_broker(on: Scene) -> None:
    on.orders.send("x" * 500_000)
    on.seen("RecordTooLargeException")
    on.runs()


def slow_consumer(on: Scene) -> None:
    for times in (1, 2, 3):
        on.consumers[0].dawdling.set()
        on.seen("This means the time between subsequent calls to poll", times=times)
        on.runs(5)
        on.consumers[0].dawdling.clear()
        on.runs(10)


def sasl_wrong_password(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SASL_PLAINTEXT"), **_login("not-the-one")).start(1)
    on.seen("failed authentication")
    on.runs()


def tls_plaintext_client(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SSL")).start(1)
    on.seen("SSL handshake failed")
    on.runs()


def tls_plaintext_client_with_room(on: Scene) -> None:
    """As before, by a client that has the memory for what it takes for the length of an answer: it is closed upon instead."""
    client = on.producer("billing-api", _door(on, "SSL"))
    client.heap = "-Xmx1g"
    client.start(1)
    on.seen("Bootstrap broker", times=5)
    on.runs()


def tls_untrusted(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SSL"), **{"security.protocol": "SSL"}).start(1)
    on.seen("SSL handshake failed")
    on.runs()


def tls_on_plaintext(on: Scene) -> None:
    on.producer("billing-api", on.address, **{"security.protocol": "SSL"}).start(1)
    on.seen("Invalid receive")
    on.runs()


def host_not_in_the_certificate(on: Scene) -> None:
    address = f"localhost:{on.doors[1].ports['SSL']}"
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(on.folder / "ca.pem")}
    on.producer("billing-api", address, **{"security.protocol": "SSL", **trusted}).start(1)
    on.seen("SSL handshake failed")
    on.runs()


def another_assignor(on: Scene) -> None:
    on.consumer("shipping-3", **{_ASSIGNOR: _ASSIGNORS.format("RoundRobin")}).start()
    on.seen("InconsistentGroupProtocolException")
    on.runs()


def group_full(on: Scene) -> None:
    on.consumer("shipping-3").start()
    on.seen("GroupMaxSizeReachedException")
    on.runs()


def no_transaction_log(on: Scene) -> None:
    """The topic of transactions wants more replicas than there are brokers."""
    on.topic("ledger")
    on.application("ledger-1", "ledger", "ledger", "2000", **_LEDGER).start()
    on.runs(75)


def consumer_leaves(on: Scene) -> None:
    on.consumers[1].stop()
    on.runs()
    on.consumers[1].start()
    on.runs()


def static_member_twice(on: Scene) -> None:
    for name in ("fraud-1", "fraud-2"):
        on.consumer(name, (TOPIC, "fraud"), **{"group.instance.id": "fraud-0"}).start()
        on.runs(8)
    on.seen("FencedInstanceIdException")
    on.runs()


def transactional_id_twice(on: Scene) -> None:
    on.topic("ledger")
    for name in ("ledger-1", "ledger-2"):
        on.application(name, "ledger", "ledger", "2000", **_LEDGER).start()
        on.seen("ProducerId set to", times=1 if name == "ledger-1" else 2)
        on.runs(8)
    on.seen("The ledger is closed")
    on.runs()


def transaction_too_long(on: Scene) -> None:
    on.topic("ledger")
    on.application("ledger-1", "ledger", "ledger", "30000", **_LEDGER, **{"transaction.timeout.ms": "10000"}).start()
    on.seen("The ledger is closed")
    on.runs()


def consumer_hung(on: Scene) -> None:
    on.consumers[0].pause()
    on.seen("has failed, removing it from the group")
    on.runs()


def consumer_hung_and_woken(on: Scene) -> None:
    consumer_hung(on)
    on.consumers[0].wake()
    on.seen("failed due to UNKNOWN_MEMBER_ID")
    on.runs()


def poison_record(on: Scene) -> None:
    on.application("ageing-1", "polls", TOPIC, **_reads("ageing", "Integer")).start()
    on.seen("Error deserializing", times=3)
    on.runs()


def damaged_record(on: Scene) -> None:
    """Bytes that were written long ago change on the disk of all brokers; a new group reads them."""
    for log in on.folder.glob(f"broker-*/data/{TOPIC}-*/00000000000000000000.log"):
        with log.open("r+b") as segment:
            segment.seek(2000)
            segment.write(b"\x00garbage\xff" * 60)
    on.application("audit-1", "polls", TOPIC, **_reads("audit", "String")).start()
    on.seen("Record is corrupt")
    on.runs()


def offsets_gone(on: Scene) -> None:
    for consumer in on.consumers:
        consumer.stop()
    on.runs()
    on.cut(TOPIC)
    on.runs(5)
    for consumer in on.consumers:
        consumer.start()
    on.seen("out of range")
    on.runs()


def all_brokers_hang(on: Scene) -> None:
    for id_ in BROKERS:
        on.pause(id_)
    on.seen("has passed since batch creation")
    on.runs(40)


def memory_full(on: Scene) -> None:
    """A busy producer has no memory left before anybody gives up on a record."""
    little = {"buffer.memory": "40000", "max.block.ms": "3000", "delivery.timeout.ms": "120000"}
    on.producer("billing-api", **little).start(50, 2000)
    on.runs()
    for id_ in BROKERS:
        on.pause(id_)
    on.seen("has passed since batch creation")
    on.runs(40)


def producer_denied(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SASL_PLAINTEXT"), **_login(PASSWORD)).start(1)
    on.seen("uthorization", times=3)
    on.runs(10)


def consumer_denied(on: Scene) -> None:
    on.consumer("billing-1", (TOPIC, "billing"), _door(on, "SASL_PLAINTEXT"), **_login(PASSWORD)).start()
    on.seen("TopicAuthorizationException")
    on.runs(10)


def no_key_on_a_compacted_topic(on: Scene) -> None:
    on.topic("profiles", **{"cleanup.policy": "compact"})
    on.producer("profiles-api", topic="profiles").start(1)
    on.seen("InvalidRecordException")
    on.runs()


def time_refused(on: Scene) -> None:
    on.topic("meters", **{"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"})
    on.application("meters-api", "dated", "meters", "86400000", **_WRITES).start()
    on.seen("InvalidTimestampException")
    on.runs()


def rebalance_storm(on: Scene) -> None:
    for _ in range(4):
        for consumer in on.consumers:
            consumer.kill()
            on.runs(12)
            consumer.start()
            on.runs(6)


def unknown_topic(on: Scene) -> None:
    on.producer("refunds-api", topic="refunds").start(1)
    on.seen("not present in metadata")
    on.runs(10)


def unknown_topic_read(on: Scene) -> None:
    on.consumer("refunds-1", ("refunds", "refunds")).start()
    on.seen("UNKNOWN_TOPIC_OR_PARTITION", times=20)
    on.runs()


def bootstrap_of_nobody(on: Scene) -> None:
    on.producer("billing-api", f"127.0.0.1:{free_ports(1)[0]}").start(1)
    on.seen("could not be established", times=10)
    on.runs()


def group_denied(on: Scene) -> None:
    reading = ("--operation", "Read", "--operation", "Describe", "--topic", TOPIC)
    on.tool("org.apache.kafka.tools.AclCommand", "--add", "--allow-principal", f"User:{USER}", *reading)
    on.consumer("billing-1", (TOPIC, "billing"), _door(on, "SASL_PLAINTEXT"), **_login(PASSWORD)).start()
    on.seen("GroupAuthorizationException")
    on.runs(10)


def rolling_deploy(on: Scene) -> None:
    for consumer in on.consumers:
        consumer.stop()
        on.runs(5)
        consumer.start()
        on.runs(10)
    on.orders.stop()
    on.orders.start()
    on.runs()


FAULTS: Mapping[str, Fault] = {
    "record-too-large-client": Fault(record_too_large_client),
    "record-too-large-broker": Fault(record_too_large_broker, Layout(topic={"max.message.bytes": "100000"})),
    "slow-consumer": Fault(slow_consumer, Layout(consumers={"max.poll.interval.ms": "8000", "max.poll.records": "50"})),
    "sasl-wrong-password": Fault(sasl_wrong_password, Layout(secured=True)),
    "tls-plaintext-client": Fault(tls_plaintext_client, Layout(secured=True)),
    "tls-plaintext-client-with-room": Fault(tls_plaintext_client_with_room, Layout(secured=True)),
    "tls-untrusted": Fault(tls_untrusted, Layout(secured=True)),
    "tls-on-plaintext": Fault(tls_on_plaintext),
    "host-not-in-the-certificate": Fault(host_not_in_the_certificate, Layout(secured=True)),
    "another-assignor": Fault(another_assignor, Layout(consumers={_ASSIGNOR: _ASSIGNORS.format("Range")})),
    "group-full": Fault(group_full, Layout(settings="\ngroup.max.size=2\n")),
    "no-transaction-log": Fault(no_transaction_log, Layout(settings="\ntransaction.state.log.replication.factor=5\n")),
    "consumer-leaves": Fault(consumer_leaves),
    "static-member-twice": Fault(static_member_twice),
    "transactional-id-twice": Fault(transactional_id_twice),
    "transaction-too-long": Fault(transaction_too_long, Layout(settings=_SOON_ROLLED_BACK)),
    "consumer-hung-and-woken": Fault(consumer_hung_and_woken, Layout(consumers=_SHORT_SESSION)),
    "slow-consumer-of-the-new-protocol": Fault(slow_consumer, Layout(consumers=_NEW_AND_SLOW)),
    "poison-record": Fault(poison_record),
    "damaged-record": Fault(damaged_record),
    "offsets-gone": Fault(offsets_gone),
    "all-brokers-hang": Fault(all_brokers_hang),
    "memory-full": Fault(memory_full),
    "producer-denied": Fault(producer_denied, Layout(secured=True, settings=_GUARDED)),
    "consumer-denied": Fault(consumer_denied, Layout(secured=True, settings=_GUARDED)),
    "no-key-on-a-compacted-topic": Fault(no_key_on_a_compacted_topic),
    "time-refused": Fault(time_refused),
    "consumer-hung": Fault(consumer_hung, Layout(consumers=_SHORT_SESSION)),
    "rebalance-storm": Fault(rebalance_storm, Layout(consumers=_SHORT_SESSION)),
    "unknown-topic": Fault(unknown_topic),
    "unknown-topic-read": Fault(unknown_topic_read),
    "bootstrap-of-nobody": Fault(bootstrap_of_nobody),
    "group-denied": Fault(group_denied, Layout(secured=True, settings=_GUARDED)),
    "rolling-deploy": Fault(rolling_deploy),
}


def _login(password: str) -> Mapping[str, str]:
    jaas = f'{_PLAIN} required username="{USER}" password="{password}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}


def _reads(group: str, values: str) -> Mapping[str, str]:
    """Return the settings of a new group that reads from the beginning, its values as this kind."""
    kinds = {"key": "String", "value": values}
    taken = {
        f"{part}.deserializer": f"org.apache.kafka.common.serialization.{kind}Deserializer" for part, kind in kinds.items()
    }
    return {"group.id": group, "auto.offset.reset": "earliest", **taken}


def _door(on: Scene, kind: str) -> str:
    return f"127.0.0.1:{on.doors[1].ports[kind]}"
