"""`tocsin run` as a process, killed with -9 while its logs are rotated: in the end it has found what a scan of them finds.

Nothing that happens to the logs here takes a line away, so nothing may be lost. tests/rulepack/test_run_histories.py has many
more histories, losses among them, without Java.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.model.rules import OWN
from engine.pipeline import replay
from tests.rulepack.playing import plan
from tests.rulepack.run_histories import BrokerHistories
from tests.servers.test_kill import Place, running, until

WRITTEN = ("app.log", "other.log")  # who opened the file behind a link that was switched before anybody looked, nobody can know
WITHIN_S = 240

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture
def history() -> Iterable[BrokerHistories]:
    made = BrokerHistories()
    yield made
    shutil.rmtree(made.root)


def happens(history: BrokerHistories, chance: random.Random) -> None:
    """Let something happen to a log that takes no line away."""
    log, lines = chance.choice(WRITTEN), chance.randrange(4)
    match chance.randrange(6):
        case 0:
            history.rotate(log, lines, at_once=chance.random() < 0.5)
        case 1:
            history.compress(log, lines, chance.randrange(3))
        case 2:
            history.copy_and_cut(log, lines, inside=True, look=False, between=0)
        case 3:
            history.append_half_a_line(log)
        case _:
            history.append(log, 1 + lines)


def keep_everything(history: BrokerHistories, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no rotated file make way: as many are kept as there are."""
    monkeypatch.setattr("tests.unit.connectors.files.file_histories.KEPT", 1000)


def lived(place: Place, history: BrokerHistories, chance: random.Random) -> None:
    """Let a process run, and things happen, until it is killed."""
    with running(place) as process:
        for _ in range(chance.randrange(1, 5)):
            planned, stored = place.logged("offsets"), place.stored()
            if chance.random() < 0.5:
                until(lambda planned=planned: place.logged("offsets") > planned, process, place)
            else:
                until(lambda stored=stored: place.stored() > stored, process, place)
            for _ in range(chance.randrange(1, 4)):
                happens(history, chance)
        time.sleep(chance.uniform(0, 1.5))  # the moment of the kill, wherever in a batch that is
        os.killpg(process.pid, signal.SIGKILL)


def found(incidents: Iterable[Incident]) -> list[Any]:
    """What incidents of the logs say, whatever the file was called that a line was read from."""
    told = (i for i in incidents if i.status not in ("merged", "retracted") and i.component != OWN)
    return sorted(
        (i.key, i.status, i.severity, i.count, i.title, repr((i.first_seen, i.last_seen, i.resolved_at)), *_proofs(i))
        for i in told
    )


def _proofs(incident: Incident) -> tuple[Any, Any]:
    evidence = sorted((each.at, each.text) for each in incident.evidence)
    return evidence, sorted((each.rule, each.count) for each in incident.symptoms)


def scanned(history: BrokerHistories) -> list[Incident]:
    items: list[RawLine | Progress] = []
    for number, (line, log) in enumerate(history.model.written.items()):
        items.append(RawLine(log, number * 1000, line.encode(), number + 1, labels={"cluster": "history"}))
    items += [Progress(log, 10**9, 10**9, caught_up=True) for log in {*history.model.written.values()}]
    return list({incident.id: incident for incident in replay(items, plan())}.values())


def played(seed: int, lives: int, history: BrokerHistories, folder: Path) -> None:
    chance, place = random.Random(seed), Place(folder)
    place.config.write_text(
        f"sources:\n  - {{type: files, paths: ['{history.logs}'], labels: {{cluster: history}}, start: earliest}}\n"
        "receivers: [{name: terminal, terminal: {}}]\nroute: {receiver: terminal}\n"
        f"store: sqlite:///state.db\nspark: {{trigger: 200ms, batch_lines: {chance.choice((3, 20, 500))}}}\n"
    )
    history.chance.seed(seed)
    for _ in range(4):
        for log in WRITTEN:
            history.beat(log)
            history.append(log, 2)
        history.passed_s += 500
    for _ in range(lives):
        lived(place, history, chance)
    history.end()
    with running(place, "--once") as process:
        assert process.wait(WITHIN_S) in (0, 1), place.said()
    with place.store() as store:
        assert list(store.losses()) == []
        assert list(store.quarantined()) == []
        assert found(store.incidents()) == found(scanned(history))
        assert found(store.incidents())


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_run_that_is_killed_while_logs_are_rotated_finds_what_a_scan_finds(
    history: BrokerHistories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_everything(history, monkeypatch)
    played(1, 2, history, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 10))
def test_a_run_that_is_killed_again_and_again_while_logs_are_rotated_finds_what_a_scan_finds(
    seed: int, history: BrokerHistories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_everything(history, monkeypatch)
    played(seed, 4, history, tmp_path)
