"""What the rules of a run cost on its latest lines."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from engine.cli.doctor.rule_times import ROUNDS, TAIL_BYTES, latest_lines, measured, rule_times
from engine.config import load
from engine.model.records import RawLine
from engine.store import Store
from tests.rulepack.playing import plan

STAMP = "[2022-10-05 12:00:00,000]"
SESSION = (
    f"{STAMP} INFO [GroupCoordinator 1]: Member a-1 in group g has failed, removing it from the group"
    " (kafka.coordinator.group.GroupCoordinator)"
)
HELLO = f"{STAMP} INFO hello (kafka.server.KafkaServer)"


def lines(*texts: str) -> list[RawLine]:
    return [RawLine("a.log", number, text.encode()) for number, text in enumerate(texts)]


def test_a_rule_is_measured_on_the_events_that_it_is_tried_on() -> None:
    ticks = count()
    times = rule_times(plan(), lines(SESSION, HELLO, SESSION), lambda: next(ticks) * 1e-6)
    by_rule = {cost.rule: cost.events for cost in times.costs}
    assert times.events == 3
    assert by_rule["group-member-session-expired"] == 2
    assert times.seconds > sum(cost.seconds for cost in times.costs) > 0
    assert [cost.seconds for cost in times.costs] == sorted((cost.seconds for cost in times.costs), reverse=True)


def test_it_ends_in_time() -> None:
    ticks = count()
    times = rule_times(plan(), lines(*[HELLO] * 1000), lambda: next(ticks) * 0.1)
    assert 0 < times.events < 1000 / ROUNDS


def test_the_lines_are_the_ends_of_the_files_of_sources(tmp_path: Path) -> None:
    log, config = tmp_path / "server.log", tmp_path / "tocsin.yml"
    log.write_text(f"{SESSION}\n" + f"{HELLO}\n" * (TAIL_BYTES // len(HELLO)))
    (tmp_path / "old.log.gz").write_bytes(b"packed")
    config.write_text(f"sources:\n  - {{type: files, paths: [{log}, {tmp_path}/old.log.gz]}}\nstore: sqlite:///state.db\n")
    settings = load(config)
    Store.open(settings.store).close()
    read = list(latest_lines(settings))
    assert {line.value.decode() for line in read} == {HELLO}
    assert sum(len(line.value) + 1 for line in read) <= TAIL_BYTES
    times = measured(settings, lambda: 0.0)
    assert times is not None
    assert times.events == len(read)
    log.unlink()
    assert measured(settings, lambda: 0.0) is None
