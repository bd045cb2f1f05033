"""`python -m tests.bench`, or some of it: `python -m tests.bench scan job latency`. It prints; there are no limits.

Without a name it measures what takes minutes; the rest (memory, state, hostile input, shippers, Elasticsearch, higher
rates) when named.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

from engine.gc_tuning import freeze_survivors
from tests.bench import clustered, full_store, hostile, indexed, job, latency, matrix, scan, shipped, state, stored
from tests.bench.machine import commit, load, machine, say
from tests.servers.broker import brokers
from tests.servers.jars import kafka_jars

ALONE = {
    "scan": scan.measure,
    "wrapped": scan.measure_wrapped,
    "memory": scan.measure_memory,
    "state": state.measure,
    "store": stored.measure,
    "full-store": full_store.measure,
    "elasticsearch": indexed.measure,
    "hostile": lambda folder: hostile.measure(),
}
ON_KAFKA = {
    "matrix": matrix.measure,
    "job": job.measure,
    "shipped": shipped.measure,
    "clustered": clustered.measure,
    "latency": latency.measure,
} | {f"latency-{rate}": partial(latency.measure, rate=rate) for rate in latency.RATES[1:]}
USUAL = ("scan", "job", "latency")


def main() -> None:
    """Measure what the command line names, the usual parts without a name."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="what tocsin costs")
    parser.add_argument("part", nargs="*", choices=[[], *ALONE, *ON_KAFKA], help="measure this only")
    parts = parser.parse_args().part or USUAL
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # unwinds: everything is stopped on the way
    freeze_survivors()  # as `tocsin scan` and a worker of the job do
    say("machine", f"{machine()}; {load()}")
    say("commit", commit())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (part for part in parts if part in ALONE):
            ALONE[part](folder)
        if wanted := [part for part in parts if part in ON_KAFKA]:
            with brokers(kafka_jars(), folder) as (broker,):
                for part in wanted:
                    ON_KAFKA[part](folder, broker.address)


if __name__ == "__main__":
    main()
