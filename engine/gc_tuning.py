"""What stays is not searched for garbage: a plan, which is some hundred thousand objects, while it is read; and what a Python
worker of Spark keeps from task to task, after each of them.

Spark's daemon collects all garbage whenever a worker has done a task (`gc.collect` in pyspark/daemon.py). The rules, and what
was learnt of the logs, are some hundred thousand objects that stay: looking at them took several times what a small batch does.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLOW_S = 0.005


class _SetAside:
    """Told by the collector before and after each collection; sets aside what is left after a full one that was slow."""

    def __init__(self) -> None:
        self._began = 0.0

    def __call__(self, phase: str, collected: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        elif collected["generation"] == 2 and time.perf_counter() - self._began > SLOW_S:
            gc.freeze()


_set_aside = _SetAside()


@contextmanager
def staying() -> Iterator[None]:
    """Look for no garbage while something large is made, and set it aside with all there is: it stays until nothing refers to
    it."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if searched:
            gc.enable()


def keep_what_stays() -> None:
    """From now on set aside what is left after a full collection that took longer than SLOW_S.

    What was set aside before is looked at once more: to be called again when something large is not needed any longer.
    """
    gc.unfreeze()
    if _set_aside not in gc.callbacks:
        gc.callbacks.append(_set_aside)
