"""What a figure is of: the machine, the commit, the corpus."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from tests.bench.corpus import lines


def machine() -> str:
    """Return what this runs on."""
    cpu = next(
        (n.partition(":")[2].strip() for n in _read("/proc/cpuinfo").splitlines() if n.startswith("model name")), "unknown"
    )
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def load() -> str:
    """Return how busy the machine is with other things."""
    return f"load {os.getloadavg()[0]:.1f} at the start"


def commit() -> str:
    """Return the commit that is measured, marked when the tree differs from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def corpus(folder: Path, count: int, hits: float) -> Path:
    """Write `count` lines, whose events hit rules at the rate `hits`, into a file of `folder`; say what it is and return it."""
    path = folder / f"{count}-{hits:g}.log"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines(count, hits=hits))
    say("corpus", f"tests/bench/corpus.py seed 1, {count:,} lines, {path.stat().st_size:,} bytes, {hits:.2%} of the events hit")
    return path


def say(what: str, text: str) -> None:
    """Print one line of the report."""
    print(f"{what:<9} {text}", flush=True)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
