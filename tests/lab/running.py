"""`tocsin run` as a process of its own, told to tell a stand-in for Slack; and showing what Slack was told."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from engine.cli.output import count
from tests.servers.ending import end
from tests.standins.slack import TOKEN, SlackStandIn

ROOT = Path(__file__).parents[2]
CHANNEL = "kafka-ops"
TOKEN_NAME = "LAB_SLACK_TOKEN"
STORE = "tocsin.db"


def say(sentence: str) -> None:
    """Print a line of progress."""
    print(f"lab: {sentence}", flush=True)


def write_config(
    folder: Path, slack: SlackStandIn, said: Mapping[str, Any], receivers: Sequence[Mapping[str, Any]] = ()
) -> Path:
    """Write tocsin.yml into `folder`: what is `said`, everything told to `slack` and `receivers`, the store beside it."""
    receiver = {"channel": f"#{CHANNEL}", "token": f"env:{TOKEN_NAME}", "base_url": slack.base_url}
    ours = {
        "receivers": [{"name": "slack", "slack": receiver}, *receivers],
        "route": {"receiver": "slack", "group_wait": "1s", "group_interval": "5s"},
        "notify_max_age": "0s",  # the logs are years old
        "store": f"sqlite:///./{STORE}",
    }
    path = folder / "tocsin.yml"
    path.write_text(yaml.safe_dump({**said, **ours}, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


class Tocsin:
    """A running `tocsin run`; what it says is shown as it comes."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "engine.cli.main", "run", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), TOKEN_NAME: TOKEN}
        self._process = subprocess.Popen(  # out of the reach of Ctrl-C: `stop` ends it, whatever ends the lab
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, process_group=0
        )
        self._reading = threading.Event()
        self._echo = threading.Thread(target=self._listen, daemon=True)
        self._echo.start()

    def ended(self, within_s: float) -> int:
        """Wait until it ends by itself; return its exit code. Raises subprocess.TimeoutExpired."""
        code = self._process.wait(within_s)
        self._echo.join()
        return code

    def reading(self, within_s: float) -> bool:
        """Wait until it has worked on a first batch; False when it does not come to that."""
        return self._reading.wait(within_s) and self.alive

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it as an operator does, and be sure."""
        end(self._process)
        self._echo.join()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr:
            for line in self._process.stderr:
                print(f"  {line}", end="", flush=True)
                if line.startswith("tocsin: batch "):
                    self._reading.set()
        self._reading.set()  # it is over; `reading` sees that


@contextmanager
def tocsin(*arguments: object) -> Iterator[Tocsin]:
    """Give a running `tocsin run`, which is over when the block is."""
    running = Tocsin(*arguments)
    try:
        yield running
    finally:
        running.stop()


def told(slack: SlackStandIn) -> dict[str, str]:
    """Return the text of the message that each incident has in the channel, by the incident's id."""
    return {parent["metadata"]["event_payload"]["key"]: parent["text"] for parent in slack.parents(CHANNEL)}


def show(slack: SlackStandIn) -> None:
    """Print what the channel holds: a line for each incident, how often it was edited, how much its thread holds."""
    parents = slack.parents(CHANNEL)
    edits, replies = sum(p["edits"] for p in parents), sum(len(slack.replies(p)) for p in parents)
    held, edited, answers = count(len(parents), "message"), count(edits, "edit"), count(replies, "line")
    say(f"#{CHANNEL} holds {held}; {edited}, {answers} in threads:")
    for parent in parents:
        print(f"  {parent['text']}")
        print(f"    edits: {parent['edits']}, replies: {len(slack.replies(parent))}", flush=True)
