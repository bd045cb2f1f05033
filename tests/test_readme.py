"""The commands of the README and of docs/rules.md work and print what is shown; `make accept` puts the present output there.

In a `console` block a line that starts with `$ ` is a command (it goes on while lines end in a backslash or a here-document is
open), and the lines up to the next one are its output. `...` stands for any lines. Times taken may differ, and how many tests a
rule has by now.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

pytestmark = pytest.mark.slow  # a process for every case

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "rules.md")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")


class Step(Struct, frozen=True):
    """One command of a page and the output shown below it."""

    page: Path
    command: str
    output: str


def steps(page: Path) -> list[Step]:
    """Return every command of every console block of `page`, in order."""
    return [step for block in BLOCK.findall(page.read_text(encoding="utf-8")) for step in _steps(page, block.splitlines())]


def _steps(page: Path, lines: list[str]) -> list[Step]:
    found: list[Step] = []
    while lines:
        size = _command_size(lines)
        command = "\n".join(lines[:size]).removeprefix("$ ")
        rest = lines[size:]
        shown = next((n for n, line in enumerate(rest) if line.startswith("$ ")), len(rest))
        found.append(Step(page, command, "\n".join(rest[:shown])))
        lines = rest[shown:]
    return found


def _command_size(lines: list[str]) -> int:
    if end := HERE_DOCUMENT.search(lines[0]):
        return lines.index(end[1]) + 1
    return next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))


STEPS = [step for page in PAGES for step in steps(page)]
DONE: set[Step] = set()  # in this process


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Return a folder like a fresh clone for each page, in which all of its commands run one after the other."""
    made = {page: tmp_path_factory.mktemp(page.stem) for page in PAGES}
    for folder in made.values():
        for name in ("samples", "rules"):
            (folder / name).symlink_to(ROOT / name)
    return made


@pytest.mark.parametrize(
    "step", [s for s in STEPS if not s.command.startswith("make ")], ids=lambda s: f"{s.page.stem}: {s.command.splitlines()[0]}"
)
def test_a_command_prints_what_is_shown(step: Step, folders: dict[Path, Path]) -> None:
    for earlier in STEPS[: STEPS.index(step)]:
        if earlier.page == step.page and not earlier.output and not earlier.command.startswith("make ") and earlier not in DONE:
            _run(earlier, folders)  # it writes what later commands read, and was left to another process
    done = _run(step, folders)
    assert done.returncode in (0, 1), done.stderr
    if os.environ.get("TOCSIN_ACCEPT") == "1":
        accept(step, done.stdout)
    elif step.output:
        assert re.fullmatch(pattern(step.output), done.stdout.strip("\n")), f"{step.command} now prints:\n{done.stdout}"


def _run(step: Step, folders: dict[Path, Path]) -> subprocess.CompletedProcess[str]:
    DONE.add(step)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80"}
    command = ["bash", "-c", step.command]
    return subprocess.run(
        command, check=False, cwd=folders[step.page], env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("target", sorted({s.command.split()[1] for s in STEPS if s.command.startswith("make ")}))
def test_a_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_links_lead_somewhere() -> None:
    for page in (README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def pattern(shown: str) -> str:
    """Return the expression that the output must match: `...` is any lines; seconds and how many tests all pass may differ."""
    parts = [r"(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in shown.strip("\n").split("\n")]
    any_time = re.sub(r"\d+\\\.\d\\ s\b", r"[\\d.]+ s", "\n".join(parts))
    return re.sub(r"(\d+)\\ of\\ \1\\ tests", r"(\\d+) of \\1 tests", any_time)


def accept(step: Step, printed: str) -> None:
    """Put `printed` below its command on its page, unless only a part of it is shown there."""
    if not step.output or "\n...\n" in f"\n{step.output}\n" or re.fullmatch(pattern(step.output), printed.strip("\n")):
        return
    text = step.page.read_text(encoding="utf-8")
    old, new = f"$ {step.command}\n{step.output}", f"$ {step.command}\n{printed.strip(chr(10))}"
    step.page.write_text(text.replace(old, new, 1), encoding="utf-8")
