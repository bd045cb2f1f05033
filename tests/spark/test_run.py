"""`tocsin run` as its user runs it: a process that may be killed, ended, and run again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.errors import StoreError
from engine.model.incidents import Incident
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import STORIES, finals, lines, replay
from tests.standins.slack import TOKEN, SlackStandIn

BROKER = next(folder for folder in STORIES if folder.name.startswith("3-"))
WITHIN_S = 240
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONFAULTHANDLER": "1"}
"""The tree's own engine, whatever is installed; every thread tells where it is when a process is ended as hung."""


def configured(folder: Path, batch_lines: int = 500_000, **source: str) -> Path:
    """Write a configuration that reads `folder`/logs into `folder`/state.db."""
    extra = "".join(f", {name}: {value}" for name, value in source.items())
    labels = f"{{cluster: {BROKER.name}}}"
    path = folder / "tocsin.yml"
    path.write_text(
        f"sources:\n  - {{type: files, paths: [logs], labels: {labels}, timezone: Asia/Seoul{extra}}}\n"
        "route: {receiver: terminal, group_wait: 0s}\nnotify_max_age: 0s\n"
        f"store: sqlite:///state.db\nspark: {{batch_lines: {batch_lines}, trigger: 200ms, audit: true}}\n"
    )
    return path


@contextmanager
def tocsin(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a process group of its own; nothing of it is left behind."""
    command = [sys.executable, "-m", "engine.cli.main", "run", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=ENVIRONMENT
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def finished(*arguments: object) -> tuple[int, str, str]:
    with tocsin(*arguments) as process:
        out, err = process.communicate(timeout=WITHIN_S)
        return process.returncode, out, err


def wait(process: subprocess.Popen[str], store: Path, holds: Callable[[Store], bool]) -> None:
    """Look at the store until `holds`; fails when the process ends before, or takes too long."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        assert process.poll() is None, process.communicate()[1]
        if store.exists() and _looked(store, holds):
            return
        time.sleep(0.05)
    pytest.fail(f"nothing came within the time\n{where_it_stands(process, store)}")


def where_it_stands(process: subprocess.Popen[str], store: Path) -> str:
    """End `process` and its children, and return what they said and what every thread of theirs was doing."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            pid, name, *_, session = re.match(r"(\d+) \((.*)\) \S+ \d+ \d+ (\d+)", stat.read_text()).groups()
            if int(session) == process.pid:
                os.kill(int(pid), signal.SIGQUIT if name == "java" else signal.SIGABRT)
    _, err = process.communicate()
    return f"{err}\n{store.with_suffix('.checkpoint').joinpath('spark.log').read_text()}"


def _looked(path: Path, holds: Callable[[Store], bool]) -> bool:
    try:
        store = Store.open(f"sqlite:///{path}")
    except StoreError:  # being created
        return False
    try:
        return holds(store)
    finally:
        store.close()


def kept(store: Path) -> list[Incident]:
    opened = Store.open(f"sqlite:///{store}")
    found = list(opened.incidents())
    opened.close()
    return found


def copied(folder: Path) -> Path:
    logs = folder / "logs"
    shutil.copytree(BROKER, logs, ignore=shutil.ignore_patterns("*.md", "*.yml"))
    return logs


@pytest.mark.long
def test_a_run_killed_in_the_middle_ends_as_if_it_had_not_been_and_tells_everything_once(tmp_path: Path) -> None:
    logs, store = copied(tmp_path), tmp_path / "state.db"
    config = configured(tmp_path, batch_lines=4)
    with tocsin("-c", config, "--once") as process:
        wait(process, store, lambda seen: seen.batches() >= 1)
        os.killpg(process.pid, signal.SIGKILL)
    done = _batches(store)
    code, out, err = finished("-c", config, "--once")
    assert code == 1, err
    assert _batches(store) > done, "it was killed after its last batch"
    final = {i.id: i for i in replay(lines(logs, BROKER.name), plan())}
    assert finals(kept(store)) == finals(final.values())
    told = [i.title for i in kept(store) if i.status not in ("merged", "retracted") and not i.pending]
    assert told
    assert all(_flat(out).count(_flat(title)) >= 1 for title in told)
    code, out, err = finished("-c", config, "--once")
    assert (code, out) == (0, ""), err


def test_a_live_run_follows_growing_files_and_ends_gracefully_when_asked(tmp_path: Path) -> None:
    logs, store = copied(tmp_path), tmp_path / "state.db"
    whole = (logs / "broker-0.log").read_text().splitlines(keepends=True)
    (logs / "broker-0.log").write_text("")
    config = configured(tmp_path, start="earliest")
    with config.open("a") as file:
        file.write("metrics: {listen: '127.0.0.1:0'}\nweb: {listen: '127.0.0.1:0'}\n")
    with tocsin("-c", config) as process:
        assert process.stderr is not None
        (address,) = next(urls for line in process.stderr if (urls := re.findall(r"at (http://\S+/)metrics", line)))
        (pages,) = next(urls for line in process.stderr if (urls := re.findall(r"pages are at (http://\S+/)", line)))
        wait(process, store, lambda seen: seen.batches() >= 1)
        with (logs / "broker-0.log").open("a") as log:
            log.writelines(whole)
        wait(process, store, lambda seen: len(seen.outbox().notification_logs()) > 0)
        metrics = {path: httpx.get(f"{address}{path}", timeout=60, trust_env=False) for path in ("readyz", "metrics")}
        page = httpx.get(pages, timeout=60, trust_env=False).text
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    assert "dawn-0" in out
    assert "dawn-0" in page
    assert (metrics["readyz"].status_code, metrics["readyz"].text) == (200, "ok\n")
    families = text_string_to_metric_families(metrics["metrics"].text)
    values = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert values["tocsin_lines_total", str(logs / "broker-0.log")] >= len(whole) - 1  # the last one may go on
    read = sum(value for (name, *_), value in values.items() if name == "tocsin_lines_total")
    assert 1 <= values["tocsin_events_total",] <= read
    matched = {labels[0]: value for (name, *labels), value in values.items() if name == "tocsin_rule_matches_total"}
    assert matched.keys() & {incident.rule for incident in kept(store)}
    assert all(1 <= value <= read for value in matched.values())
    assert values["tocsin_outbox_entries", "terminal", "delivered"] >= 1
    assert values["tocsin_batch_seconds_count",] >= 1
    assert "audit: 1 block also read by the reference: no difference" in err
    assert "columns and the reference differ" not in err


def test_pages_show_an_incident_while_the_run_that_found_it_goes_on(tmp_path: Path) -> None:
    copied(tmp_path)
    config, store = configured(tmp_path, start="earliest"), tmp_path / "state.db"
    command = [sys.executable, "-m", "engine.cli.main", "serve", "-c", str(config), "--listen", "127.0.0.1:0"]
    with tocsin("-c", config) as process:
        wait(process, store, lambda seen: seen.batches() >= 1)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as pages:
            try:
                assert pages.stdout is not None
                (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", pages.stdout.readline())
                wait(process, store, lambda seen: len(seen.outbox().notification_logs()) > 0)
                found = kept(store)[0]
                assert found.title in httpx.get(f"{address}incidents/{found.id}", timeout=60, trust_env=False).text
                done = _batches(store)
                wait(process, store, lambda seen: seen.batches() > done)
            finally:
                pages.kill()
        os.killpg(process.pid, signal.SIGTERM)  # as systemd does: Java is told too
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    assert "a defect of tocsin" not in err


def test_a_dry_run_says_what_would_be_read_and_starts_nothing(tmp_path: Path) -> None:
    copied(tmp_path)
    code, out, _ = finished("-c", configured(tmp_path), "--dry-run")
    assert code == 0
    assert re.search(r"source +files of cluster 3-producer-retries: 4 files now", out)
    assert not (tmp_path / "state.db").exists()


def test_bad_configurations_and_missing_logs_are_one_sentence(tmp_path: Path) -> None:
    code, _, err = finished("-c", tmp_path / "none.yml")
    assert (code, err.count("\n")) == (2, 1)
    assert "the configuration cannot be read" in err
    (tmp_path / "tocsin.yml").write_text("sources: []\ncolour: red\n")
    code, _, err = finished("-c", tmp_path / "tocsin.yml")
    assert (code, "2 problems found" in err) == (2, True)
    code, _, err = finished("-c", configured(tmp_path), "--once")
    assert code == 3
    assert "none of the sources has anything that can be read" in err


def _batches(store: Path) -> int:
    opened = Store.open(f"sqlite:///{store}")
    count = opened.batches()
    opened.close()
    return count


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_slack_gets_one_message_for_each_incident_however_often_it_runs(tmp_path: Path) -> None:
    copied(tmp_path)
    with SlackStandIn() as server:
        config = configured(tmp_path)
        receiver = f"{{name: ops, slack: {{channel: '#kafka-ops', token: 'file:token', base_url: '{server.base_url}'}}}}"
        text = config.read_text().replace("receiver: terminal", "receiver: ops")
        config.write_text(f"{text}receivers:\n  - {receiver}\n")
        (tmp_path / "token").write_text(TOKEN)
        codes = [finished("-c", config, "--once")[0] for _ in range(2)]
        parents = server.parents()
    assert codes == [1, 0]
    told = [i.id for i in kept(tmp_path / "state.db") if i.status not in ("merged", "retracted") and not i.pending]
    assert sorted(parent["metadata"]["event_payload"]["key"] for parent in parents) == sorted(told)
    assert all(server.replies(parent) for parent in parents)


GREETING = """\
id: {id}
title: "{{name}} said {id}"
severity: high
component: any
detection: {{said: "{id} {{name}}", condition: said}}
entity: [name]
runbook: {{cause: Somebody came., impact: None.}}
tests: [{{log: {id} you, fires: {{name: you}}}}, {{log: nobody, silent: true}}]
"""


def test_a_live_run_takes_up_rules_that_change_and_keeps_the_last_good_ones(tmp_path: Path) -> None:
    rules, log, store = tmp_path / "rules", tmp_path / "logs" / "app.log", tmp_path / "state.db"
    rules.mkdir()
    log.parent.mkdir()
    log.write_text("")
    (rules / "hello.yml").write_text(GREETING.format(id="hello"))
    config = configured(tmp_path, start="earliest")
    config.write_text(f"rules: [rules]\n{config.read_text()}")

    def seen_after(*said: str) -> Callable[[Store], bool]:
        return lambda opened: {incident.title for incident in opened.incidents()} == set(said)

    def write(line: str) -> None:
        with log.open("a") as out:
            out.write(f"[2024-01-01 10:00:00,000] INFO {line}\n")

    with tocsin("-c", config) as process:
        write("hello Ann")
        wait(process, store, seen_after("Ann said hello"))
        (rules / "welcome.yml").write_text(GREETING.format(id="welcome"))
        _until(process, "2 signatures")
        write("welcome Bob")
        wait(process, store, seen_after("Ann said hello", "Bob said welcome"))
        (rules / "welcome.yml").write_text(GREETING.format(id="welcome").replace("severity: high", "severity: hihg"))
        _until(process, "did you mean `high`?")
        write("welcome Cid")
        wait(process, store, seen_after("Ann said hello", "Bob said welcome", "Cid said welcome"))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err


def _until(process: subprocess.Popen[str], said: str) -> None:
    """Read what the process says until it says `said`; the test's own time limit ends it where that never comes."""
    assert process.stderr is not None
    assert any(said in line for line in process.stderr)
