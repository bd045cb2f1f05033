"""`tocsin run` over real Kafka, killed with -9 again and again: in the end it has found and told what it would have anyway."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from msgspec import Struct

from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.pipeline import replay
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.shipping import shipped
from tests.servers.topics import Topics
from tests.spark.finals import STORIES, finals
from tests.standins.slack import TOKEN, SlackStandIn

ROOT = Path(__file__).parents[2]
SHIPPED = [folder for folder in STORIES if folder.name[:2] in ("1-", "2-", "3-", "5-")]
POST, UPDATE = "chat.postMessage", "chat.update"
KILLS = int(os.environ.get("TOCSIN_KILLS", "2"))  # a life takes 15 seconds and more
MANY = 18  # kills among which every kind of cut is sure to be
SEED = 22  # of two kills: a batch is in the store and Spark does not know; Slack took a message and the notifier does not know
WITHIN_S = 480
POLL_S = 0.002
LINES_A_LIFE = 9

Process = subprocess.Popen[bytes]
Moment = Callable[[Process], None]

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("runtime")]


@dataclass
class Feed:
    """Produces the lines of several stories, a line of each in turn, and remembers what `replay()` is to be given."""

    stories: list[Iterator[RawLine | Progress]]
    said: list[list[RawLine | Progress]] = field(init=False)

    def __post_init__(self) -> None:
        self.said = [[] for _ in self.stories]
        self._lines = self._in_turn()

    def give(self, lines: int | None = None) -> int:
        """Produce the next `lines`, all that are left when None; return how many there were."""
        return sum(1 for _ in islice(self._lines, lines))

    def _in_turn(self) -> Iterator[None]:
        left = list(zip(self.stories, self.said, strict=True))
        while left:
            for pair in list(left):
                story, said = pair
                item = next(story, None)
                if item is None:
                    left.remove(pair)
                    continue
                said.append(item)
                yield


class Place(Struct, frozen=True):
    """The folder that a run is started in: configuration, store, checkpoint, and what it says."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "tocsin.yml"

    def stored(self) -> int:
        """Return how many batches are in the store."""
        if not (self.folder / "state.db").exists():
            return 0
        with self.store() as store:
            return store.batches()

    def said(self) -> str:
        return (self.folder / "stderr").read_text() if (self.folder / "stderr").exists() else ""

    def incidents(self) -> list[Incident]:
        with self.store() as store:
            return list(store.incidents())

    @contextmanager
    def store(self) -> Iterator[Store]:
        with closing(Store.open(f"sqlite:///{self.folder}/state.db")) as store:
            yield store

    def logged(self, kind: str) -> int:
        """Return how many batches Spark has begun (`offsets`), or holds to be done (`commits`)."""
        numbers = [int(path.name) for path in self.folder.glob(f"state.checkpoint/query/{kind}/*") if path.name.isdigit()]
        return max(numbers, default=-1) + 1


@contextmanager
def running(place: Place, *more: str) -> Iterator[Process]:
    """Start the command in a process group of its own, Java in it; nothing of it is left behind."""
    command = [sys.executable, "-m", "engine.cli.main", "run", "-c", str(place.config), *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        (place.folder / "stderr").open("w") as said,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environment, start_new_session=True) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def until(holds: Callable[[], bool], process: Process, place: Place) -> None:
    """Look again and again until it `holds`; fails when the process ends before, or it takes too long."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert process.poll() is None, place.said()
        assert time.monotonic() < deadline, f"nothing came within the time\n{place.said()}"
        time.sleep(POLL_S)


class Moments:
    """The moments to be killed at, each a random time after something that can be seen. They return when they have come."""

    def __init__(self, place: Place, slack: SlackStandIn, chance: random.Random) -> None:
        self._place, self._slack, self._chance = place, slack, chance

    def all(self) -> list[Moment]:
        return [self.starting, self.up, self.in_a_batch, self.stored, self.posting, self.telling]

    def starting(self, process: Process) -> None:
        """Java is being started, then Spark."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text() != "", process, self._place)
        time.sleep(self._chance.uniform(0, 6))

    def up(self, process: Process) -> None:
        """Spark is up, the query is being started."""
        until(lambda: "Spark is up" in self._place.said(), process, self._place)
        time.sleep(self._chance.uniform(0, 4))

    def in_a_batch(self, process: Process) -> None:
        """Spark has planned a batch."""
        known = self._place.logged("offsets")
        until(lambda: self._place.logged("offsets") > known, process, self._place)
        time.sleep(self._chance.uniform(0, 0.5))

    def stored(self, process: Process) -> None:
        """A batch is in the store, and Spark does not know yet."""
        known = self._place.stored()
        until(lambda: self._place.stored() > known, process, self._place)

    def posting(self, process: Process) -> None:
        """Slack took a message, and the notifier does not know yet."""
        self._telling(process, "hold", POST)

    def telling(self, process: Process) -> None:
        """Slack is being told: it takes that or not, and the notifier never knows."""
        self._telling(process, self._chance.choice(("hold", "stall")), POST, UPDATE)

    def _telling(self, process: Process, behaviour: str, *methods: str) -> None:
        known = sum(map(self._slack.count, methods))
        for method in methods:
            self._slack.script(method, behaviour)
        until(lambda: sum(map(self._slack.count, methods)) > known, process, self._place)
        self._slack.unscript()


@pytest.mark.timeout(600 + 90 * KILLS)
def test_killed_again_and_again_it_finds_the_same_and_tells_everything_once(topics: Topics, tmp_path: Path) -> None:
    place, chance = Place(tmp_path), random.Random(SEED)
    with SlackStandIn() as slack, closing(KafkaProducer(bootstrap_servers=topics.address)) as producer:
        feed = configured(place, topics, slack, producer)
        moments = Moments(place, slack, chance).all()
        chance.shuffle(moments)
        wanted = [moments[number % len(moments)] for number in range(KILLS)]
        cuts: Counter[str] = Counter()
        for moment in wanted:
            feed.give(LINES_A_LIFE)
            with running(place) as process:
                moment(process)
                os.killpg(process.pid, signal.SIGKILL)
            cuts.update(cut(place, slack, moment.__name__))
        assert KILLS < MANY or set(cuts) == {"a batch", "the store ahead of Spark", "a new message"}, cuts
        assert feed.give() > 0, "it was all told before the end"
        with running(place, "--once") as process:
            assert process.wait(WITHIN_S) in (0, 1), place.said()
        told = Counter(parent["metadata"]["event_payload"]["key"] for parent in slack.parents())
        replies = Counter(said(reply) for parent in slack.parents() for reply in slack.replies(parent))
    expected = [final for items in feed.said for final in finals({i.id: i for i in replay(items, plan())}.values())]
    assert finals(place.incidents()) == sorted(expected)
    open_ones = {i.id for i in place.incidents() if i.status not in ("merged", "retracted") and not i.pending}
    assert open_ones <= set(told)
    assert set(told.values()) == {1}, "one message each"
    assert set(replies.values()) == {1}, "nothing is said twice in a thread"


def cut(place: Place, slack: SlackStandIn, moment: str) -> Iterator[str]:
    """Say what a kill cut off."""
    planned, stored, committed = place.logged("offsets"), place.stored(), place.logged("commits")
    if planned > stored:
        yield "a batch"
    if stored > committed:
        yield "the store ahead of Spark"
    method, said = slack.calls[-1] if slack.calls else ("", {})
    if moment == "posting" and method == POST and not said.get("thread_ts"):
        yield "a new message"


def said(message: dict[str, Any]) -> str:
    """Return what marks a message of the notifier."""
    return json.dumps(message["metadata"]["event_payload"], sort_keys=True)


def configured(place: Place, topics: Topics, slack: SlackStandIn, producer: KafkaProducer) -> Feed:
    """Make a topic for each story, and a configuration that watches them and tells `slack`."""
    sources, stories = "", []
    for folder in SHIPPED:
        topic = topics.make(partitions=2)
        stories.append(shipped(producer, topic, folder))
        sources += f"  - {{type: kafka, bootstrap_servers: '{topics.address}', topics: [{topic}], timezone: Asia/Seoul,"
        sources += f" labels: {{cluster: {folder.name}}}, start: earliest}}\n"
    receiver = f"{{name: ops, slack: {{channel: '#kafka-ops', token: 'file:token', base_url: '{slack.base_url}'}}}}"
    (place.folder / "token").write_text(TOKEN)
    place.config.write_text(
        f"sources:\n{sources}receivers:\n  - {receiver}\nroute: {{receiver: ops, group_wait: 0s, group_interval: 1s}}\n"
        "store: sqlite:///state.db\nspark: {trigger: 200ms}\n"
    )
    return Feed(stories)
