"""The lines per second of the reference pipeline, and the CPU that a scan of a small file takes, start to answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.bench.machine import corpus, say

TOCSIN = [sys.executable, "-m", "engine.cli.main"]
LARGE, SMALL = 50_000, 200


def measure(folder: Path) -> None:
    """Measure and print."""
    path = corpus(folder, SMALL)
    _cost(path)  # fills the rule cache
    small = cpu_seconds(path, runs=5)
    say("command", f"tocsin scan {path.name} --format json")
    say("result", f"{small:.2f} s of CPU (best of 5, rules cached)")
    path = corpus(folder, LARGE)
    speed = LARGE / (cpu_seconds(path, runs=2) - small)
    say("command", f"tocsin scan {path.name} --format json")
    say("result", f"{speed:,.0f} lines per second of CPU, without start-up")


def cpu_seconds(path: Path, runs: int) -> float:
    """Return the user and system time of the cheapest of `runs` scans of `path`."""
    return min(_cost(path) for _ in range(runs))


def _cost(path: Path) -> float:
    before = os.times()
    subprocess.run([*TOCSIN, "scan", str(path), "--format", "json"], check=False, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
