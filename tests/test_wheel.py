"""What is shipped works by itself: the wheel carries the rules, and its command finds them far from the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin folder of a fresh virtual environment that holds the built wheel and nothing of the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    bin_ = folder / "venv" / "bin"
    run(bin_ / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return bin_


def test_the_rules_come_with_it(installed: Path, tmp_path: Path) -> None:
    beside = ("components", "dialects", "formats", "terms")
    shipped = {path.stem for path in (ROOT / "rules").rglob("*.yml") if path.parent.name not in beside}
    listed = run(installed / "tocsin", "rules", "list", cwd=tmp_path)
    assert shipped
    assert {rule for rule in shipped if not rule.startswith("_") and rule not in listed} == set()


def test_a_rule_can_be_written_with_it(installed: Path, tmp_path: Path) -> None:
    """The ordinary logs, the names of settings and the explanations come with it."""
    (tmp_path / "trouble.log").write_text(
        "[2022-10-05 17:05:39,869] ERROR The disk of broker 3 is gone (kafka.log.LogManager)\n"
    )
    run(installed / "tocsin", "rules", "new", "trouble.log", "--id", "disk-gone", "--out", "mine", cwd=tmp_path)
    assert "2 of 2 tests" in run(installed / "tocsin", "rules", "test", "--rules", "mine", cwd=tmp_path)
    assert "TOC612" in run(installed / "tocsin", "rules", "lint", "--rules", "mine", cwd=tmp_path)
    assert "Kafka 2.0 to 4.3" in run(installed / "tocsin", "rules", "explain-code", "TOC611", cwd=tmp_path)


def test_the_catalogues_of_other_languages_come_with_it(installed: Path, tmp_path: Path) -> None:
    program = "from engine.language import words_of; print(words_of('ko')('Acknowledge'))"
    assert run(installed / "python", "-X", "utf8", "-c", program, cwd=tmp_path) == "확인\n"


def test_the_files_of_the_pages_come_with_it(installed: Path) -> None:
    pages = ROOT / "engine" / "web"
    files = {path.name for folder in ("templates", "static") for path in (pages / folder).iterdir()}
    assert "layout.html" in files
    assert files <= {path.name for path in installed.parent.rglob("engine/web/*/*")}


def test_it_scans_without_spark(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "quiet.log").write_text("[2022-10-05 17:05:39,869] INFO Kafka version: 3.2.0 (org.apache.kafka.common.utils)\n")
    assert "Nothing found in" in run(installed / "tocsin", "scan", "quiet.log", cwd=tmp_path)
