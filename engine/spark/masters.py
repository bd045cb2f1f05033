"""Whether the master of a standalone cluster takes connections. Spark itself says nothing about one that has gone: a run goes
on with the executors that it has, and gets no others."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress

from engine.spark.spark_settings import without_user

CONNECT_S = 1.0


def addresses_of(master: str) -> Sequence[tuple[str, int]]:
    """Return host and port of each master of a standalone cluster (`spark://a:7077,b:7077` names two, one of which leads), in
    the order of `master`; empty for any other kind of master. Pure."""
    scheme, _, places = without_user(master).partition("://")
    if scheme != "spark":
        return ()
    pairs = [place.rpartition(":") for place in places.split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in pairs if port.isdecimal()]


def answers(master: str) -> bool:
    """Return whether one of the masters of a standalone cluster takes connections; True for any other kind of master. Takes up
    to CONNECT_S for each."""
    addresses = addresses_of(master)
    return not addresses or any(_connects(address) for address in addresses)


def _connects(address: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(address, CONNECT_S):
        return True
    return False
