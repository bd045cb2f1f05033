"""Every kind of mistake is found where it stands, with nothing beside it: tests/golden/diagnostics/expected.txt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from engine.cli.linting import lint
from engine.dsl.codes import Code
from engine.model.diagnostics import Diagnostic, Level

GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
CASES = sorted(path for path in GOLDEN.iterdir() if path.is_dir() or path.suffix == ".yml")
TOO_LONG_FOR_A_FILE = {"FILE_TOO_LARGE", "PATTERN_TOO_LONG"}  # made in test_reader.py and test_patterns.py


HEADING = "# file code line column: what `tocsin rules lint` finds in each file (or folder) beside this one, and nothing else"


@cache
def findings_by_case() -> Mapping[str, Sequence[Diagnostic]]:
    """Return everything found in each case by itself."""
    return {case.name: lint([case]) for case in CASES}


def findings() -> list[tuple[str, str, int, int]]:
    """Return path, code, line and column of everything found in each case by itself."""
    return [
        (Path(d.path).relative_to(GOLDEN).as_posix(), d.code, d.line, d.column)
        for diagnostics in findings_by_case().values()
        for d in diagnostics
    ]


def test_finds_exactly_what_is_wrong_and_where(golden: Callable[[str, str], None]) -> None:
    rows = [" ".join(map(str, row)) for row in findings()]
    golden("diagnostics/expected.txt", "\n".join([HEADING, *rows, ""]))


def test_every_case_has_a_finding() -> None:
    assert [case for case, diagnostics in findings_by_case().items() if not diagnostics] == []


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


def test_a_finding_shows_its_line_and_underlines_within_it() -> None:
    for case, diagnostics in findings_by_case().items():
        for diagnostic in diagnostics:
            assert diagnostic.message and not diagnostic.message.endswith("."), case
            assert diagnostic.level is (Level.WARNING if diagnostic.code.startswith("TOC6") else Level.ERROR), case
            if diagnostic.source_line:
                length = len(diagnostic.source_line)
                assert 1 <= diagnostic.column <= length + 1, case
                assert diagnostic.column - 1 + diagnostic.length <= max(length, diagnostic.column), case
