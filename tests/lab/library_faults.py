"""Faults of clients that are not Java's."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import TOPIC, Scene

_GROUP = {"group.id": "mailing", "auto.offset.reset": "earliest"}
_SLOW = {"max.poll.interval.ms": "8000", "session.timeout.ms": "7000"}


def slow_consumer(on: Scene) -> None:
    on.library("mailer", "reads", TOPIC, 15, **_GROUP, **_SLOW).start()
    on.runs(75)


FAULTS: Mapping[str, Fault] = {"python-slow-consumer": Fault(slow_consumer)}
