"""Faults of the quorum of controllers, and of who belongs to a cluster."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, CONTROLLER_ID, Layout, Scene
from tests.servers.broker import BROKER, Node, free_ports

_ACTIVE = re.compile(r"^\[([^]]+)\].* Becoming the active controller at epoch", re.MULTILINE)
_THREE = Layout(apart=True, controllers=3)
_TWIN = BROKERS[-1]


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
    """The active controller stops for so long that another one takes over."""
    active = on.servers[_active(on)]
    assert active.pid is not None
    os.kill(active.pid, signal.SIGSTOP)
    on.runs(30)
    os.kill(active.pid, signal.SIGCONT)
    on.runs(30)


def node_id_taken(on: Scene) -> None:
    """Somebody starts another broker with the node id of one that runs."""
    (port,) = free_ports(1)
    twin = on.server(Node(_TWIN, port, 0, BROKER), f"broker-{_TWIN}-twin")
    on.servers[-_TWIN] = twin
    twin.launch()
    on.seen("DUPLICATE_BROKER_REGISTRATION")
    on.runs(40)


FAULTS: Mapping[str, Fault] = {
    "quorum-lost": Fault(quorum_lost, _THREE),
    "quorum-lost-with-brokers": Fault(quorum_lost_with_brokers),
    "controller-hung-and-woken": Fault(controller_hung_and_woken, _THREE),
    "node-id-taken": Fault(node_id_taken, Layout(apart=True)),
}


def _active(on: Scene) -> int:
    """Return the id of the controller that was the last to become the active one."""
    logs = {id_: server.log for id_, server in on.servers.items() if id_ >= CONTROLLER_ID}
    since = {id_: max(_ACTIVE.findall(log.read_text()), default="") for id_, log in logs.items()}
    return max(since, key=lambda id_: since[id_])
