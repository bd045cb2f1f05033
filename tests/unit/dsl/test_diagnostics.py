"""Every kind of mistake is found where it stands, with nothing beside it: tests/golden/diagnostics/expected.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.dsl import lint
from engine.dsl.codes import Code
from engine.model.diagnostics import Level

GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
CASES = sorted(path for path in GOLDEN.iterdir() if path.is_dir() or path.suffix == ".yml")
TOO_LONG_FOR_A_FILE = {"FILE_TOO_LARGE", "PATTERN_TOO_LONG"}  # made in test_reader.py and test_patterns.py


def expected() -> dict[str, list[tuple[str, str, int, int]]]:
    found: dict[str, list[tuple[str, str, int, int]]] = {}
    for line in (GOLDEN / "expected.txt").read_text().splitlines():
        if not line.startswith("#"):
            path, code, row, column = line.split()
            found.setdefault(path.split("/")[0], []).append((path, code, int(row), int(column)))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_finds_exactly_what_is_wrong_and_where(case: Path) -> None:
    found = [(Path(d.path).relative_to(GOLDEN).as_posix(), d.code, d.line, d.column) for d in lint([case])]
    assert found == expected()[case.name]


def test_all_files_together_give_the_findings_of_each() -> None:
    alone = {(d.path, d.code) for case in CASES for d in lint([case])}
    together = {(d.path, d.code) for d in lint([GOLDEN])}
    assert alone <= together


def test_every_kind_of_finding_has_an_example() -> None:
    shown = {code for rows in expected().values() for _, code, _, _ in rows}
    rules = {code for code in Code if code.id < "TOC7"}
    assert {code.name for code in rules if code.id not in shown} == TOO_LONG_FOR_A_FILE


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
