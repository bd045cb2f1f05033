"""`tocsin run` as docs/operating.md says: signals at any moment, backups and restoring by the very commands of that page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.spark.test_run import GREETING, WITHIN_S, _until, finished, kept, tocsin, wait

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
ENDING = "tocsin: ending: the batch at work is finished or taken back"


class Installation:
    """A folder with a rule, logs and a configuration whose store and checkpoint are called as on the page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "state.db"
        self.config, self._log = folder / "tocsin.yml", folder / "logs" / "app.log"
        for name in ("rules", "logs"):
            (folder / name).mkdir()
        (folder / "rules" / "hello.yml").write_text(GREETING.format(id="hello"))
        self.configured("earliest")

    def configured(self, start: str) -> None:
        self.config.write_text(
            f'rules: [rules]\nsources:\n  - {{type: files, paths: [logs], start: "{start}"}}\n'
            "route: {receiver: terminal, group_wait: 0s}\nnotify_max_age: 0s\n"
            "store: sqlite:///state.db\nspark: {trigger: 200ms}\n"
        )

    def greet(self, *names: str) -> None:
        with self._log.open("a") as log:
            log.writelines(f"[2024-01-01 10:00:00,000] INFO hello {name}\n" for name in names)

    def once(self) -> tuple[int, list[str], str]:
        """Run to the end of the input; return the exit code, who was told of, and what was said."""
        code, out, err = finished("-c", self.config, "--once")
        assert "Traceback" not in err
        return code, sorted(re.findall(r"(\w+) said hello", out)), err

    def documented(self, heading: str, block: int) -> str:
        """Run a block of commands of the page and return what it printed."""
        section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        commands = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[block]
        done = subprocess.run(["sh", "-ec", commands], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def known(self) -> list[str]:
        return sorted(incident.title.partition(" ")[0] for incident in kept(self.store))


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the page's commands need sqlite3")
def test_a_store_that_was_backed_up_while_the_run_went_on_is_restored_alone(site: Installation) -> None:
    site.greet("Ann")
    with tocsin("-c", site.config) as process:
        wait(process, site.store, lambda store: len(store.outbox().notification_logs()) == 1)
        site.documented("Back up", 0)
        site.greet("Bob")
        wait(process, site.store, lambda store: len(store.outbox().notification_logs()) == 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    shutil.copy(site.folder / "state-backup.db", site.store)  # and nothing else: that is not enough
    code, told, err = site.once()
    assert (code, told) == (3, [])
    assert "state.db is older than the checkpoint" in err
    time = site.documented("Restore", 1)
    assert f"`start: {time[:19]}Z`" in err
    site.configured(f"{time[:19]}Z")
    code, told, err = site.once()
    assert (code, told, site.known()) == (1, ["Bob"], ["Ann", "Bob"])
    assert "there is no checkpoint" in err
    assert site.once()[:2] == (0, [])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the page's commands need sqlite3")
def test_store_and_checkpoint_restored_together_go_on_from_their_time(site: Installation) -> None:
    site.greet("Ann")
    assert site.once()[:2] == (1, ["Ann"])
    site.documented("Back up", 1)
    site.greet("Bob")
    assert site.once()[:2] == (1, ["Bob"])
    site.documented("Restore", 0)
    assert site.known() == ["Ann"]
    assert site.once()[:2] == (1, ["Bob"])
    assert site.once()[:2] == (0, [])


def test_a_store_that_is_deleted_under_a_run_is_put_back_and_nobody_is_told_twice(site: Installation) -> None:
    site.greet("Ann")
    with tocsin("-c", site.config) as process:
        wait(process, site.store, lambda store: len(store.outbox().notification_logs()) == 1)
        for end in ("", "-wal", "-shm"):
            site.store.with_name(f"state.db{end}").unlink(missing_ok=True)
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 3
    assert "the incident store was removed while it was in use; what it held has been put back there: start again" in err
    assert "Traceback" not in err
    assert site.known() == ["Ann"]
    site.greet("Bob")
    assert site.once()[:2] == (1, ["Bob"])


def test_a_store_that_is_deleted_between_two_runs_is_missed(site: Installation) -> None:
    site.greet("Ann")
    assert site.once()[:2] == (1, ["Ann"])
    site.store.unlink()
    for _ in range(2):
        code, told, err = site.once()
        assert (code, told) == (3, [])
        assert "state.db is gone, and the checkpoint" in err
        assert not site.store.exists()


def test_signals_of_a_live_run_and_a_second_run_beside_it(site: Installation) -> None:
    with tocsin("-c", site.config) as process:
        wait(process, site.store, lambda store: store.batches() >= 1)
        code, _, err = finished("-c", site.config)
        assert code == 3
        assert f"state.db is in use by another job (process {process.pid})" in err
        process.send_signal(signal.SIGQUIT)
        _until(process, "awaitTermination")
        process.send_signal(signal.SIGHUP)
        _until(process, "the rules have been read again: none has changed")
        for rule in (site.folder / "rules").iterdir():
            rule.unlink()
        process.send_signal(signal.SIGHUP)
        _until(process, "there is no rule file at or under it")
        site.greet("Ann")
        wait(process, site.store, lambda store: len(store.incidents()) == 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert ENDING in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("moment", "number", "group"),
    [("spark.log", signal.SIGINT, False), ("lock", signal.SIGINT, True), ("spark.log", signal.SIGTERM, True)],
    ids=["ctrl-c while Java starts", "ctrl-c at a terminal before Java", "systemd while Java starts"],
)
def test_a_run_that_is_told_to_end_while_spark_starts_does(
    site: Installation, moment: str, number: signal.Signals, group: bool
) -> None:
    site.greet("Ann")
    with tocsin("-c", site.config, "--once") as process:
        there = site.folder / "state.checkpoint" / moment
        while not there.exists():
            assert process.poll() is None, process.communicate()[1]
        os.killpg(process.pid, number) if group else process.send_signal(number)
        out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out) == (128 + number, "")
    assert ENDING in err
    assert "Traceback" not in err
    assert "defect" not in err
    assert site.once()[:2] == (1, ["Ann"])


def test_a_second_ctrl_c_ends_it_at_once(site: Installation) -> None:
    with tocsin("-c", site.config) as process:
        wait(process, site.store, lambda store: store.batches() >= 1)
        holding = sqlite3.connect(site.store)
        holding.execute("BEGIN IMMEDIATE")  # the batch at work cannot end
        process.send_signal(signal.SIGINT)
        _until(process, "once more ends at once")
        process.send_signal(signal.SIGINT)
        process.wait(timeout=WITHIN_S)
        holding.rollback()
        holding.close()
    assert process.returncode == -signal.SIGINT
