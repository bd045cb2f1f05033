"""A socket of Slack in a process of its own: `python -m tests.unit.connectors.slack.socket_process STORE_URL BASE_URL`."""

from __future__ import annotations

import sys
import threading

from connectors import slack
from engine.cli.desk import StoreDesk
from engine.store import Store
from tests.standins.slack import TOKEN
from tests.standins.slack_socket import APP_TOKEN


def main(store_url: str, base_url: str) -> None:
    """Listen until the process is ended."""
    desk = StoreDesk(Store.open(store_url), lambda: None)
    slack.open_socket(TOKEN, APP_TOKEN, base_url, desk, lambda sentence: print(sentence, flush=True)).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
