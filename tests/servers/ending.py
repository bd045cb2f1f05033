"""Ending processes that tests started, each by itself."""

from __future__ import annotations

import subprocess
from typing import Any

Process = subprocess.Popen[Any]


def end(process: Process | None, within_s: float = 60) -> None:
    """End a process as an operator does, and be sure; None is one that was never started."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: Process | None) -> None:
    """End a process as `kill -9` does."""
    if process is not None:
        process.kill()
        process.wait()
