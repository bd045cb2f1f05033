"""What a check says of sources: nothing to read is a failure, a part of them missing a warning."""

from __future__ import annotations

from pathlib import Path

from engine.cli.checking.outcomes import CheckOutcome
from engine.cli.checking.sources import SHOWN, checked_sources
from engine.cli.inputs import RunSurroundings, checks
from engine.config import load
from tests.unit.cli.test_inputs import answered
from tests.unit.connectors.answering import answering


def checked(folder: Path, sources: str, around: RunSurroundings | None = None) -> list[tuple[CheckOutcome, str]]:
    (folder / "tocsin.yml").write_text(f"sources: {sources}\n")
    settings = load(folder / "tocsin.yml", checks())
    return [(item.outcome, item.sentence) for item in checked_sources(settings, False, around or RunSurroundings())]


def test_a_missing_part_is_a_warning_and_nothing_at_all_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a line\n")
    (present, missing) = checked(tmp_path, "[{type: files, paths: [a.log, b.log]}]")
    assert (present, missing[0]) == ((CheckOutcome.OK, "1 file now"), CheckOutcome.WARNING)
    ((outcome, sentence),) = checked(tmp_path, "[{type: files, paths: [b.log]}]")
    assert (outcome, sentence.endswith("b.log: there is no such file")) == (CheckOutcome.FAILED, True)


def test_many_files_are_cut_and_counted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for number in range(SHOWN + 7):
        (tmp_path / "logs" / f"{number}.log").write_text("a line\n")
    (tmp_path / "tocsin.yml").write_text("sources: [{type: files, paths: [logs]}]\n")
    (item,) = checked_sources(load(tmp_path / "tocsin.yml", checks()), False, RunSurroundings())
    assert (len(item.details), item.details[-1]) == (SHOWN + 1, "and 7 more")


def test_a_pattern_without_an_index_is_told(tmp_path: Path) -> None:
    with answering(answered) as server:
        both = checked(tmp_path, f"[{{type: elasticsearch, url: '{server.url}', indices: ['logs-*', 'app-*']}}]")
        none = checked(tmp_path, f"[{{type: elasticsearch, url: '{server.url}', indices: ['app-*']}}]")
    assert (CheckOutcome.WARNING, "no index is called app-*") in both
    assert (CheckOutcome.FAILED, "no index is called app-*") in none


def test_what_earlier_runs_mean_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a line\n")
    around = RunSurroundings(offsets={f"files default {tmp_path}/a.log": {}})
    (_, (outcome, sentence)) = checked(tmp_path, "[{type: files, paths: [a.log], start: earliest}]", around)
    assert (outcome, "`start` applies to a first run only" in sentence) == (CheckOutcome.OK, True)
