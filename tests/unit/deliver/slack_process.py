"""A notifier with a Slack channel as its receiver, in a process of its own.

Run it with `python -m tests.unit.deliver.slack_process STORE_URL BASE_URL`.
"""

from __future__ import annotations

import sys
import threading

from connectors import slack
from engine.clock import SteadyClock
from engine.deliver import Notifier, Policy, on_a_thread
from engine.model.routes import Route, Timings
from engine.store import Store
from tests.standins.slack import TOKEN


def main(store_url: str, base_url: str) -> None:
    """Notify until the process is ended; nothing waits but the receiver."""
    receivers = {"ops": slack.open_receiver("#kafka-ops", TOKEN, base_url)}
    names = frozenset(receivers)
    policy = Policy(Route("ops", timings=Timings(0.0, 0.0, 0.0)), edits=names, gatherers=names, storm_size=5)
    notifier = Notifier(Store.open(store_url), policy, receivers, SteadyClock(), interval_s=0.0, begin=on_a_thread)
    notifier.run(threading.Event(), lambda sentence: print(sentence, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
