"""`make bench`: the lines per second of the reference pipeline, and the CPU that a scan of a small file takes, start to answer.

Prints the machine, the commit, the corpus and the command beside every figure; nothing here is a test, and nothing has a limit.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from corpus import lines

TOCSIN = Path(sys.executable).with_name("tocsin")
LARGE, SMALL = 50_000, 200


def machine() -> str:
    """Return what this runs on."""
    cpu = next(
        (n.partition(":")[2].strip() for n in _read("/proc/cpuinfo").splitlines() if n.startswith("model name")), "unknown"
    )
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def commit() -> str:
    """Return the commit that is measured, marked when the tree differs from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def cpu_seconds(path: Path, runs: int) -> float:
    """Return the user and system time of the cheapest of `runs` scans of `path`."""
    return min(_cost(path) for _ in range(runs))


def corpus(folder: Path, count: int) -> Path:
    """Write `count` lines into a file of `folder`, say what it is, and return it."""
    path = folder / f"{count}.log"
    path.write_text("\n".join(lines(count)) + "\n", encoding="utf-8")
    print(f"corpus    tests/bench/corpus.py seed 1, {count:,} lines, {path.stat().st_size:,} bytes, 5 hits per 1,000 events")
    return path


def main() -> None:
    """Measure and print."""
    print(f"machine   {machine()}\ncommit    {commit()}")
    with tempfile.TemporaryDirectory() as name:
        path = corpus(Path(name), SMALL)
        _cost(path)  # fills the rule cache
        small = cpu_seconds(path, runs=5)
        print(f"command   tocsin scan {path.name} --format json\nresult    {small:.2f} s of CPU (best of 5, rules cached)")
        path = corpus(Path(name), LARGE)
        speed = LARGE / (cpu_seconds(path, runs=2) - small)
        print(
            f"command   tocsin scan {path.name} --format json\nresult    {speed:,.0f} lines per second of CPU, without start-up"
        )


def _cost(path: Path) -> float:
    before = os.times()
    subprocess.run([TOCSIN, "scan", str(path), "--format", "json"], check=False, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


if __name__ == "__main__":
    main()
