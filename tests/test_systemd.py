"""The units of deploy/systemd are what systemd takes, name what this version has, and allow little."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from engine import __version__
from engine.cli.main import command_files

FOLDER = Path(__file__).parents[1] / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
MOST_EXPOSED = 2.0  # of 10, by systemd's own scale

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the programs of systemd")


def analyze(*arguments: str | Path) -> str:
    done = subprocess.run(["systemd-analyze", *arguments], check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_every_unit_runs_a_command_that_exists() -> None:
    commands = [
        re.search(r"^ExecStart=/opt/tocsin/bin/tocsin (\S+)(?: --no-pages)? -c /etc/tocsin/tocsin.yml$", u.read_text(), re.M)
        for u in UNITS
    ]
    assert [match[1] for match in commands if match] == ["serve", "run"]
    assert {"serve", "run"} <= command_files().keys()


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_valid_and_hardened(unit: Path, tmp_path: Path) -> None:
    runnable = tmp_path / unit.name
    runnable.write_text(unit.read_text().replace("/opt/tocsin/bin/tocsin", "/bin/true"))
    assert [line for line in analyze("verify", runnable).splitlines() if str(tmp_path) in line or unit.name in line] == []
    score = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", "--no-pager", unit))
    assert score is not None
    assert float(score[1]) <= MOST_EXPOSED


@needs_systemd
def test_the_user_and_the_folder_are_declared() -> None:
    done = subprocess.run(
        ["systemd-sysusers", "--dry-run", FOLDER / "tocsin.sysusers"], check=False, capture_output=True, text=True
    )
    assert "tocsin" in done.stdout + done.stderr
    assert "Unknown" not in done.stderr
    assert re.search(r"^d /etc/tocsin 0750 root tocsin", (FOLDER / "tocsin.tmpfiles").read_text(), re.M)


def test_the_page_names_the_wheel_of_this_version() -> None:
    assert f"tocsin-{__version__}-py3-none-any.whl" in (FOLDER / "README.md").read_text()
