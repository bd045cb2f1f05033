"""Faults of clients that are not Java's: librdkafka's and kafka-python's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tests.lab.fault import Fault
from tests.lab.scene import TOPIC, Layout, Scene
from tests.servers.secured import USER

_LIBRARIES = ("confluent", "python")
_GROUP = {"group.id": "mailing", "auto.offset.reset": "earliest"}
_SLOW = {"max.poll.interval.ms": "8000", "session.timeout.ms": "7000"}
_LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "{}username": USER,
    "{}password": "not-the-one",
}


def broker_killed(on: Scene) -> None:
    for library in _LIBRARIES:
        on.library(f"{library}-api", library, "writes", TOPIC, 200).start()
        on.library(f"{library}-mailer", library, "reads", TOPIC, 0, **{**_GROUP, "group.id": f"{library}-mailing"}).start()
    on.runs()
    on.servers[3].kill()
    on.seen("Fencing broker 3")
    on.runs(70)


def record_too_large(on: Scene, library: str) -> None:
    on.library("pictures-api", library, "writes", TOPIC, 1_500_000).start()
    on.seen("Cannot send", times=5)
    on.runs()


def record_too_large_for_the_topic(on: Scene, library: str) -> None:
    on.library("pictures-api", library, "writes", TOPIC, 500_000).start()
    on.seen("Not delivered", times=5)
    on.runs()


def wrong_password(on: Scene, library: str) -> None:
    prefix = {"confluent": "sasl.", "python": "sasl.plain."}[library]
    login = {name.format(prefix): value for name, value in _LOGIN.items()}
    door = f"127.0.0.1:{on.doors[1].ports['SASL_PLAINTEXT']}"
    on.library("billing-api", library, "writes", TOPIC, 200, **{**login, "bootstrap.servers": door}).start()
    on.seen("failed authentication", times=3)
    on.runs()


def slow_consumer(on: Scene, library: str) -> None:
    on.library("mailer", library, "reads", TOPIC, 15, **_GROUP, **_SLOW).start()
    on.runs(75)


def unknown_topic(on: Scene, library: str) -> None:
    on.library("refunds-api", library, "writes", "refunds", 200, **_as_known(library)).start()
    on.runs(75)


FAULTS: Mapping[str, Fault] = {
    "libraries-broker-killed": Fault(broker_killed),
    **{
        f"{library}-{name}": Fault(partial(provoke, library=library), layout)
        for library in _LIBRARIES
        for name, provoke, layout in (
            ("record-too-large-client", record_too_large, Layout()),
            ("record-too-large-broker", record_too_large_for_the_topic, Layout(topic={"max.message.bytes": "100000"})),
            ("wrong-password", wrong_password, Layout(secured=True)),
            ("slow-consumer", slow_consumer, Layout()),
            ("unknown-topic", unknown_topic, Layout()),
        )
    },
}


def _as_known(library: str) -> Mapping[str, str]:
    """Return what makes a library say soon that it does not get on."""
    return {"confluent": {"message.timeout.ms": "30000"}, "python": {"max.block.ms": "30000"}}[library]
