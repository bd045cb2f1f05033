"""Faults of clients that are not Java's."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import TOPIC, Scene
from tests.servers.broker import free_ports

_GROUP = {"group.id": "mailing", "auto.offset.reset": "earliest"}
_SLOW = {"max.poll.interval.ms": "8000", "session.timeout.ms": "7000"}


def slow_consumer(on: Scene) -> None:
    on.library("mailer", "reads", TOPIC, 15, **_GROUP, **_SLOW).start()
    on.runs(75)


def broker_killed(on: Scene) -> None:
    on.library("mailer", "reads", TOPIC, 0, **_GROUP).start()
    on.runs()
    on.servers[3].kill()
    on.seen("Fencing broker 3")
    on.runs(70)


def bootstrap_of_nobody(on: Scene) -> None:
    on.library("mailer", "reads", TOPIC, 0, **{"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}, **_GROUP).start()
    on.seen("Bootstrap connection to", times=5)
    on.runs()


FAULTS: Mapping[str, Fault] = {
    "python-slow-consumer": Fault(slow_consumer),
    "python-broker-killed": Fault(broker_killed),
    "python-bootstrap-of-nobody": Fault(bootstrap_of_nobody),
}
