"""Faults of the quorum of controllers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, CONTROLLER_ID, Layout, Scene

_THREE = Layout(apart=True, controllers=3)


def quorum_lost(on: Scene) -> None:
    """Two of three controllers are gone; the brokers go on with what they lead."""
    for id_ in (CONTROLLER_ID, CONTROLLER_ID + 1):
        on.servers[id_].kill()
    on.seen("Election timed out before receiving sufficient vote responses", times=3)
    on.runs(60)


def quorum_lost_with_brokers(on: Scene) -> None:
    """Two of three servers are gone that are controllers and brokers."""
    for id_ in BROKERS[1:]:
        on.servers[id_].kill()
    on.runs(70)


def controller_hung_and_woken(on: Scene) -> None:
    """The one controller has no time for longer than a broker's session lasts; the brokers miss nothing else."""
    on.pause(CONTROLLER_ID)
    on.runs(30)
    on.wake(CONTROLLER_ID)
    on.in_sync()
    on.runs()


def controller_killed(on: Scene) -> None:
    """The one controller is gone; the brokers miss nothing else."""
    on.servers[CONTROLLER_ID].kill()
    on.runs(90)


def two_brokers_hang(on: Scene) -> None:
    """Two of three brokers hang, one of them with the group's coordinator."""
    for id_ in BROKERS[1:]:
        on.pause(id_)
    on.runs(90)


FAULTS: Mapping[str, Fault] = {
    "quorum-lost": Fault(quorum_lost, _THREE),
    "controller-killed": Fault(controller_killed, Layout(apart=True)),
    "two-brokers-hang": Fault(two_brokers_hang, Layout(apart=True)),
    "controller-hung-and-woken": Fault(controller_hung_and_woken, Layout(apart=True)),
    "quorum-lost-with-brokers": Fault(quorum_lost_with_brokers),
}
