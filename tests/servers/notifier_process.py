"""A notifier with an index as its receiver, in a process of its own.

Run it with `python -m tests.servers.notifier_process STORE_URL ELASTICSEARCH_URL INDEX CHANGES`.
"""

from __future__ import annotations

import sys
import threading

from connectors.elasticsearch.connection import ElasticsearchConnection
from connectors.elasticsearch.incidents.receiver import open_receiver
from engine.clock import SteadyClock
from engine.deliver import Notifier, Policy, on_a_thread
from engine.model.routes import Route
from engine.store import Store


def main(store_url: str, url: str, index: str, changes: str) -> None:
    """Notify until the process is ended."""
    receivers = {"es": open_receiver(ElasticsearchConnection((url,)), index, changes)}
    policy = Policy(Route("es"), records=frozenset(receivers))
    notifier = Notifier(Store.open(store_url), policy, receivers, SteadyClock(), begin=on_a_thread)
    notifier.run(threading.Event(), lambda sentence: print(sentence, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
