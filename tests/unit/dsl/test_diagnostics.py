"""Every kind of mistake is found where it stands, with nothing beside it: tests/golden/diagnostics/expected.txt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.linting import lint
from engine.dsl.codes import Code
from engine.model.diagnostics import Level

GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
CASES = sorted(path for path in GOLDEN.iterdir() if path.is_dir() or path.suffix == ".yml")
TOO_LONG_FOR_A_FILE = {"FILE_TOO_LARGE", "PATTERN_TOO_LONG"}  # made in test_reader.py and test_patterns.py


HEADING = "# file code line column: what `tocsin rules lint` finds in each file (or folder) beside this one, and nothing else"


def findings() -> list[tuple[str, str, int, int]]:
    """Return path, code, line and column of everything found in each case by itself."""
    return [(Path(d.path).relative_to(GOLDEN).as_posix(), d.code, d.line, d.column) for case in CASES for d in lint([case])]


def test_finds_exactly_what_is_wrong_and_where(golden: Callable[[str, str], None]) -> None:
    rows = [" ".join(map(str, row)) for row in findings()]
    golden("diagnostics/expected.txt", "\n".join([HEADING, *rows, ""]))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_every_case_has_a_finding(case: Path) -> None:
    assert lint([case])


def test_all_files_together_give_the_findings_of_each() -> None:
    together = {(Path(d.path).relative_to(GOLDEN).as_posix(), d.code) for d in lint([GOLDEN])}
    loaded = {
        Code.SHADOWED.id,
        Code.NOTHING_SURE.id,
        Code.CASE_UNTESTED.id,
    }  # for these a pack is used, which it is when nothing stops loading
    assert {(path, code) for path, code, _, _ in findings() if code not in loaded} <= together


def test_every_kind_of_finding_has_an_example() -> None:
    shown = {code for _, code, _, _ in findings()}
    assert {code.name for code in Code if code.id < "TOC7" and code.id not in shown} == TOO_LONG_FOR_A_FILE


def test_codes_are_unique_and_explained() -> None:
    assert len({code.id for code in Code}) == len(Code)
    assert all(code.meaning.endswith(".") for code in Code)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_finding_shows_its_line_and_underlines_within_it(case: Path) -> None:
    for found in lint([case]):
        assert found.message and not found.message.endswith(".")
        assert found.level is (Level.WARNING if found.code.startswith("TOC6") else Level.ERROR)
        if found.source_line:
            assert 1 <= found.column <= len(found.source_line) + 1
            assert found.column - 1 + found.length <= max(len(found.source_line), found.column)
