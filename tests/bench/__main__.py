"""`python -m tests.bench`, or some of it: `python -m tests.bench scan job latency`, and by its name alone `hostile`.

It prints; there are no limits.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.bench import hostile, job, latency, scan
from tests.bench.machine import commit, load, machine, say
from tests.servers.broker import brokers
from tests.servers.jars import kafka_jars

ON_KAFKA = {"job": job.measure, "latency": latency.measure}


def main() -> None:
    """Measure what the command line names, everything without a name."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="what tocsin costs")
    parser.add_argument(
        "part",
        nargs="*",
        choices=[[], "scan", "hostile", *ON_KAFKA],
        help="measure this only; hostile is left out unless it is named",
    )
    parts = parser.parse_args().part or ["scan", *ON_KAFKA]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # unwinds: everything is stopped on the way
    say("machine", f"{machine()}; {load()}")
    say("commit", commit())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "scan" in parts:
            scan.measure(folder)
        if "hostile" in parts:
            hostile.measure()
        if wanted := [part for part in parts if part in ON_KAFKA]:
            with brokers(kafka_jars(), folder) as (broker,):
                for part in wanted:
                    ON_KAFKA[part](folder, broker.address)


if __name__ == "__main__":
    main()
