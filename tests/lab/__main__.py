"""The lab: `python -m tests.lab`, or one act of it: `python -m tests.lab stories`.

stories: the logs of the sample outages are shipped into topics of a real broker; what tocsin makes of them must be what the
samples say. dead-broker: three brokers, of which one is killed; tocsin reads their live logs and must tell of it.
Ends with 0 when all of that came out, with 1 when not, with 2 when the lab cannot be set up. Keeps its state in .lab.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from pathlib import Path

from engine.errors import RuntimeMissing
from engine.spark.session import check_runtime
from tests.lab.acts import dead_broker, stories
from tests.lab.running import say
from tests.servers.jars import NoJars, kafka_jars

LAB = Path(__file__).parents[2] / ".lab"
ACTS = {"stories": stories, "dead-broker": dead_broker}


def main() -> int:
    """Play the acts that the command line names, all without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="tocsin against real Kafka brokers")
    parser.add_argument("act", nargs="?", choices=ACTS, help="play this one only")
    only = parser.parse_args().act
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # unwinds: everything is stopped on the way
    try:
        check_runtime()
        say("looking for the jars of a Kafka broker (about 45 MB when they are not there yet)")
        jars = kafka_jars()
    except (RuntimeMissing, NoJars) as missing:
        say(f"the lab cannot be set up: {missing}")
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return _played(jars, [only] if only else list(ACTS))


def _played(jars: Path, names: list[str]) -> int:
    shutil.rmtree(LAB, ignore_errors=True)
    for name in names:
        folder = LAB / name
        folder.mkdir(parents=True)
        try:
            wrong = ACTS[name](jars, folder)
        except KeyboardInterrupt:
            say("stopped")
            return 128 + signal.SIGINT
        if wrong:
            say(f"{name}: not as it should be\n  " + "\n  ".join(wrong))
            return 1
        say(f"{name}: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
