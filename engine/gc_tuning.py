"""Garbage collection: objects that live as long as the process are not scanned again and again.

A plan is some hundred thousand objects; scanning them while it is loaded, or after each small batch, is wasted. Spark's daemon
runs a full collection whenever a worker has finished a task (`gc.collect` in pyspark/daemon.py): scanning the rules and the
layouts learnt from logs took several times as long as a small batch.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLOW_S = 0.005


class _FreezeAfterSlowCollection:
    """A callback of the collector: freezes all survivors of a full collection that took longer than SLOW_S."""

    def __init__(self) -> None:
        self._began = 0.0

    def __call__(self, phase: str, collected: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        elif collected["generation"] == 2 and time.perf_counter() - self._began > SLOW_S:
            gc.freeze()


_callback = _FreezeAfterSlowCollection()


@contextmanager
def without_gc() -> Iterator[None]:
    """Disable the collector while something large is built, and freeze all objects at the end. A frozen object is freed when
    nothing refers to it any more, except one in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def freeze_survivors() -> None:
    """From now on freeze all survivors of each full collection that takes longer than SLOW_S.

    Objects frozen earlier are scanned once more: call it again when something large is no longer needed.
    """
    gc.unfreeze()
    if _callback not in gc.callbacks:
        gc.callbacks.append(_callback)
