"""The folder of a run goes with it, or at the next start; never that of a run that goes on."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from engine.spark.run_folder import RunFolder, remove_stale

MAKES = "import sys, pathlib; from engine.spark.run_folder import RunFolder as R; f = R(pathlib.Path(sys.argv[1]));"


def run_of_another_process(base: Path, then: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"{MAKES} (f.path / 'file').write_text('x'); print(f.path, flush=True); {then}", str(base)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_it_is_for_its_user_alone_and_gone_when_removed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    (folder.path / "sub").mkdir()
    folder.remove()
    assert list(tmp_path.iterdir()) == []
    folder.remove()


def test_one_whose_process_was_killed_is_taken_away_and_one_whose_process_runs_is_not(tmp_path: Path) -> None:
    own = RunFolder(tmp_path)
    with run_of_another_process(tmp_path, "sys.stdin.read()") as running, run_of_another_process(tmp_path, "") as over:
        goes_on, left = Path(running.stdout.readline().strip()), Path(over.stdout.readline().strip())
        over.wait()
        assert left.is_dir()
        assert remove_stale(tmp_path) == [left]
        assert {own.path, goes_on} == set(tmp_path.iterdir())
        running.kill()
        running.wait()
        assert remove_stale(tmp_path) == [goes_on]
    assert list(tmp_path.iterdir()) == [own.path]
    own.remove()


def test_a_process_that_has_the_number_of_an_ended_one_does_not_keep_its_folder(tmp_path: Path) -> None:
    left = tmp_path / f"tocsin-run-{os.getpid()}-1-abcd1234"
    left.mkdir(mode=0o700)
    assert remove_stale(tmp_path) == [left]


def test_what_somebody_holds_a_lock_on_stays_though_its_number_means_nothing_here(tmp_path: Path) -> None:
    held = RunFolder(tmp_path)
    elsewhere = held.path.rename(tmp_path / f"tocsin-run-{2**22 + 7}-1-abcd1234")  # above any number of a process
    assert remove_stale(tmp_path) == []
    assert elsewhere.is_dir()
    held.remove()


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    (tmp_path / "tocsin-run-notes").mkdir()
    (tmp_path / f"tocsin-run-{2**22 + 7}-1-file").write_text("")
    (tmp_path / "target").mkdir()
    (tmp_path / f"tocsin-run-{2**22 + 7}-1-link").symlink_to(tmp_path / "target")
    assert remove_stale(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 4


def test_a_temporary_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    assert remove_stale(tmp_path / "nothing") == []
