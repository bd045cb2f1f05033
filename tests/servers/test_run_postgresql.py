"""The parts of a run with their store in PostgreSQL: a job, two notifiers and pages, each a process, and each can go away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from engine.errors import StoreAway
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.postgresql import PASSWORD, PostgresServer
from tests.spark.finals import finals, lines, replay
from tests.spark.test_run import BROKER, ENVIRONMENT, WITHIN_S, copied

pytestmark = pytest.mark.spark
TAKEOVER_S = 15


class Part:
    """A command of tocsin as a process; what it prints is collected."""

    def __init__(self, *arguments: str) -> None:
        environment = {**ENVIRONMENT, "STORE_PASSWORD": PASSWORD}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=environment,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """End its process group; return its exit code."""
        os.killpg(self.process.pid, by)
        return self.process.wait(WITHIN_S)

    def close(self) -> None:
        """Read what is left of a process that has ended."""
        self._reader.join(WITHIN_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)


@contextmanager
def part(*arguments: str) -> Iterator[Part]:
    started = Part(*arguments)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.end(signal.SIGKILL)
        started.close()


def until(holds: Callable[[], object], *parts: Part) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        try:
            if holds():
                return
        except StoreAway:
            pass
        for each in parts:
            assert each.process.poll() is None, each.text
        time.sleep(0.3)
    pytest.fail("\n".join(each.text for each in parts))


def configured(folder: Path, address: str, checkpoint: str = "one") -> str:
    url = address.replace(f":{PASSWORD}@", "@")
    source = f"{{type: files, paths: [logs], labels: {{cluster: {BROKER.name}}}, timezone: Asia/Seoul, start: earliest}}"
    path = folder / f"{checkpoint}.yml"
    path.write_text(
        f"sources: [{source}]\nroute: {{receiver: terminal, group_wait: 0s}}\nnotify_max_age: 0s\nretention: 3650d\n"
        f"store: {{url: '{url}', password: 'env:STORE_PASSWORD'}}\nspark: {{trigger: 200ms, checkpoint: {checkpoint}}}\n"
    )
    return str(path)


def test_job_notifiers_and_pages_on_one_store_each_survive_the_others(tmp_path: Path, postgresql: PostgresServer) -> None:
    logs, address = copied(tmp_path), postgresql.empty_store()
    whole = (logs / "broker-0.log").read_text()
    (logs / "broker-0.log").write_text("")
    config = configured(tmp_path, address)
    with ExitStack() as parts:
        job = parts.enter_context(part("job", "-c", config))
        store = Store.open(address)
        until(lambda: store.batches() > 0, job)
        first = parts.enter_context(part("notify", "-c", config))
        until(lambda: "notifying terminal of the incidents of" in first.text, first)
        second = parts.enter_context(part("notify", "-c", config))
        until(lambda: "notifications are sent by process" in first.text + second.text, first, second)
        leader, standby = (first, second) if "notifications are sent by" in second.text else (second, first)
        pages = parts.enter_context(part("serve", "-c", config, "--listen", "127.0.0.1:0"))
        until(lambda: "http://127.0.0.1" in pages.text, pages)

        other = parts.enter_context(part("job", "-c", configured(tmp_path, address, "two")))
        assert other.process.wait(WITHIN_S) == 3, other.text
        assert re.search(rf"is in use by another job \(process {job.process.pid} on ", other.text), other.text

        postgresql.crash()
        with (logs / "broker-0.log").open("a") as log:
            log.write(whole)
        (pages_at,) = re.findall(r"http://127\.0\.0\.1:\d+", pages.text)
        assert httpx.get(f"{pages_at}/", timeout=60, trust_env=False).status_code == 503
        postgresql.start()
        final = finals({i.id: i for i in replay(lines(logs, BROKER.name), plan())}.values())
        until(lambda: finals(store.incidents()) == final, job, leader, standby, pages)
        told = [i for i in store.incidents() if i.status not in ("merged", "retracted") and not i.pending]
        until(lambda: {i for _, i in store.outbox().notification_logs()} >= {i.id for i in told}, leader, standby)
        assert told[0].title in httpx.get(f"{pages_at}/incidents/{told[0].id}", timeout=60, trust_env=False).text

        assert leader.end(signal.SIGKILL) == -signal.SIGKILL
        killed_at = time.monotonic()
        until(lambda: "this process does now" in standby.text, standby)
        assert time.monotonic() - killed_at < TAKEOVER_S
        assert job.end() == standby.end() == 0, job.text + standby.text
        assert pages.end() == 0, pages.text
        outcomes = [attempt.outcome.value for i in told for attempt in store.outbox().attempts(i.id)]
        assert outcomes == ["delivered"] * len(told), "one message for an incident, and none again by the second notifier"
        assert not [each for each in (job, other, leader, standby, pages) if PASSWORD in each.text]
        store.close()
