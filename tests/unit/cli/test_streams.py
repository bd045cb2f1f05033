"""Output that cannot be written: a full disk is said, a reader that went away ends it quietly, and stderr decides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LISTING, SAID = ("rules", "list"), "tocsin: cannot write output: No space left on device\n"
SHORT = ("--version",)


def shell(redirected: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run tocsin in a shell with its streams redirected; return the exit code, stdout and stderr that are left."""
    command = f'{sys.executable} -m engine.cli.main "$@" {redirected}'
    given = {**os.environ, "PYTHONUNBUFFERED": "", **environment}
    done = subprocess.run(
        ["bash", "-c", command, "bash", *arguments], check=False, cwd=ROOT, capture_output=True, text=True, env=given
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [LISTING, SHORT, ("--help",)], ids=lambda arguments: arguments[0])
def test_a_full_disk_is_one_sentence(arguments: tuple[str, ...], unbuffered: str) -> None:
    assert shell("> /dev/full", *arguments, PYTHONUNBUFFERED=unbuffered) == (3, "", SAID)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_ends_it_quietly(unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    given = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "engine.cli.main", *LISTING]
    done = subprocess.run(command, check=False, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, env=given)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("redirected", ["2> /dev/full", "2>&-", "2> >(:)"], ids=["full", "closed", "no reader"])
def test_nobody_who_hears_complaints_changes_neither_the_answer_nor_the_code(redirected: str, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("[2023-02-03 02:05:02,285] INFO nothing to see (x.Y)\n")
    code, out, err = shell(redirected, "scan", str(log), "/not/there")
    assert (code, err) == (3, "")
    assert "therwise nothing found" in out
    assert "/not/there: there is no such file" in out


def test_a_closed_stdout_is_no_place_for_other_files(tmp_path: Path) -> None:
    code, _, err = shell(">&-", "scan", "/not/there")
    assert (code, err) == (3, "tocsin: /not/there: there is no such file\n")
