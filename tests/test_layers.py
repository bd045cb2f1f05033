"""Every layer contract of pyproject.toml is seen to fail when it is broken: a contract that cannot fail guards nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a process for every case

ROOT = Path(__file__).parent.parent
CONTRACTS = {c["id"]: c for c in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]}

# contract: the file that breaks it, and how
BREAKS = {
    "core": ("engine/model/records.py", "import yaml"),
    "stages": ("engine/match/__init__.py", "import engine.parse"),
    "pure": ("engine/correlate/__init__.py", "import rich"),
    "spark": ("engine/store/__init__.py", "import pyspark"),
    "connectors": ("connectors/files/__init__.py", "import engine.match"),
    "apart": ("connectors/files/__init__.py", "import connectors.memory"),
    "wiring": ("engine/incident/__init__.py", "import connectors"),
    "picture": ("engine/picture/strips.py", "import engine.store"),
    "web": ("engine/web/pages.py", "import engine.dsl"),
    "pages": ("engine/match/__init__.py", "import engine.web"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the packages and their contracts."""
    for package in ("engine", "connectors"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "_rulepack"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--no-cache", *options],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_every_contract_has_a_break() -> None:
    assert set(BREAKS) == set(CONTRACTS)


def test_the_code_keeps_every_contract(copy: Path) -> None:
    kept = lint(copy)
    assert kept.returncode == 0, kept.stdout + kept.stderr


@pytest.mark.parametrize("contract", BREAKS)
def test_a_break_is_seen(copy: Path, contract: str) -> None:
    file, statement = BREAKS[contract]
    with (copy / file).open("a") as source:
        source.write(f"\n{statement}\n")
    broken = lint(copy, "--contract", contract)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert f"{CONTRACTS[contract]['name']} BROKEN" in broken.stdout
