"""A fault: what is done to a cluster at work."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tests.lab.scene import PLAIN, Layout, Scene


class Fault(Struct, frozen=True):
    """What is done to a cluster at work. `provoke` returns when its symptoms are printed."""

    provoke: Callable[[Scene], None]
    layout: Layout = PLAIN
