"""Every kind of mistake in tocsin.yml is found where it stands: tests/golden/configurations/expected.txt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.inputs import checks
from engine.config import advise, examine, load
from engine.dsl import builtin_rules, load_cached
from engine.dsl.codes import Code
from engine.errors import ConfigError

GOLDEN = Path(__file__).parents[2] / "golden" / "configurations"
CASES = sorted(GOLDEN.glob("*.yml"))
HEADING = "# file code line column: what loading each file beside this one finds, and nothing else"


def findings(path: Path) -> list[str]:
    """Return file, code, line and column of everything that is wrong in a configuration; advice too where it is named so."""
    if path.name.startswith("advice-"):
        examination = examine(path, checks())
        advise(examination, load_cached([builtin_rules()]))
        diagnostics = examination.findings()
    else:
        with pytest.raises(ConfigError) as wrong:
            load(path, checks())
        diagnostics = wrong.value.diagnostics
    return [f"{path.name} {each.code} {each.line} {each.column}" for each in diagnostics]


def test_finds_exactly_what_is_wrong_and_where(golden: Callable[[str, str], None]) -> None:
    rows = [row for path in CASES for row in findings(path)]
    golden("configurations/expected.txt", "\n".join([HEADING, *rows, ""]))


def test_every_kind_of_finding_has_an_example() -> None:
    shown = {row.split()[1] for path in CASES for row in findings(path)}
    assert {code.id for code in Code if code.id >= "TOC7"} <= shown
