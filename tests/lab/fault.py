"""A fault: what is done to a cluster at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.lab.scene import PLAIN, Layout, Scene


@dataclass(frozen=True)
class Fault:
    """What is done to a cluster at work. `provoke` returns when its symptoms are printed."""

    provoke: Callable[[Scene], None]
    layout: Layout = PLAIN
