"""The lab: `python -m tests.lab`, or one act of it: `python -m tests.lab stories`.

stories: the logs of the sample outages are shipped into topics of a real broker; what tocsin makes of them must be what the
samples say. elasticsearch: the same logs as documents in a real Elasticsearch, and the incidents as documents beside them, with
links into Kibana. dead-broker: three brokers, of which one is killed; tocsin reads their live logs and must tell of it.
faults: played only when asked for, `python -m tests.lab faults [NAME...]`: three brokers and clients, on which one fault after
the other is provoked; what a scan of their logs says must be what tests/captured says. Takes about two minutes each.
Ends with 0 when all of that came out, with 1 when not, with 2 when the lab cannot be set up. Keeps its state in .lab.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from engine.errors import RuntimeMissing
from engine.spark.session import check_runtime
from tests.lab.acts import dead_broker, stories
from tests.lab.faults import FAULTS, LAB, faults
from tests.lab.indexed import indexed_stories
from tests.lab.running import say
from tests.servers.jars import NoJars, all_jars, kafka_jars
from tests.servers.search_home import search_home

Act = Callable[[Path], list[str]]
ACTS = {"stories": stories, "dead-broker": dead_broker}
SEARCH = "elasticsearch"


def main() -> int:
    """Play the acts that the command line names, all without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="tocsin against real brokers and Elasticsearch")
    parser.add_argument("act", nargs="?", choices=[*ACTS, SEARCH, "faults"], help="play this one only")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"the faults to provoke, all without one: {', '.join(FAULTS)}")
    said = parser.parse_args()
    if unknown := set(said.names) - set(FAULTS):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # unwinds: everything is stopped on the way
    try:
        check_runtime()
        say("looking for the jars of Kafka and Elasticsearch (about 45 MB each when they are not there yet)")
        acts = _acts(said.act, said.names)
    except (RuntimeMissing, NoJars) as missing:
        say(f"the lab cannot be set up: {missing}")
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return _played(acts)


def _acts(name: str | None, of_faults: Sequence[str]) -> dict[str, Act]:
    """Return what is to be played, by name, with the jars it needs. Raises NoJars."""
    if name == "faults":
        for version in {FAULTS[fault].layout.kafka for fault in of_faults or FAULTS}:
            all_jars(version)
        return {name: partial(faults, names=of_faults)}
    acts: dict[str, Act] = {each: partial(act, kafka_jars()) for each, act in ACTS.items() if name in (None, each)}
    return {**acts, SEARCH: partial(indexed_stories, search_home())} if name in (None, SEARCH) else acts


def _played(acts: Mapping[str, Act]) -> int:
    for name, act in acts.items():
        folder = LAB / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            wrong = act(folder)
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
