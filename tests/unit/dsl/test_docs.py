"""docs/rules.md says what is implemented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.dsl import builtin_rules, lint
from engine.dsl.codes import Code
from engine.dsl.detection import FIELDS, MODIFIERS
from engine.dsl.patterns import TYPES
from engine.dsl.schema import CORRELATION_TYPES, PLACES, STATUSES, ComponentFile, CorrelationEntry, FormatFile, RuleFile
from engine.dsl.templates import CONTEXT, SUFFIXES, UNITS
from engine.model.expressions import FUNCTIONS
from engine.model.rules import COMPONENTS, SEVERITIES

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "rules.md").read_text(encoding="utf-8")
OVER_TIME = (DOCS / "correlations.md").read_text(encoding="utf-8")


def test_the_example_is_a_rule_without_a_finding(tmp_path: Path) -> None:
    example = TEXT.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "connect-record-too-large-client.yml").write_text(example)
    beside = builtin_rules() / "connect" / "connect-task-killed.yml"
    assert [found.one_line() for found in lint([tmp_path, beside])] == []


def test_the_table_of_findings_is_the_table_of_codes() -> None:
    rows = re.findall(r"^\| (TOC\d+) \| (.+) \|$", TEXT, re.MULTILINE)
    assert rows == [code.value for code in Code if code.id < "TOC7"]


@pytest.mark.parametrize(
    "words",
    [
        TYPES,
        FUNCTIONS,
        FIELDS,
        MODIFIERS,
        CONTEXT,
        SUFFIXES,
        UNITS,
        COMPONENTS,
        SEVERITIES,
        STATUSES,
        PLACES,
        CORRELATION_TYPES,
    ],
)
def test_every_word_of_the_language_is_named(words: tuple[str, ...]) -> None:
    assert [word for word in words if not re.search(rf"[`{{:.]{re.escape(word)}\b", TEXT)] == []


@pytest.mark.parametrize("model", [RuleFile, ComponentFile, FormatFile])
def test_every_key_is_named(model: type[RuleFile]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in TEXT] == []


def test_every_key_and_type_of_correlations_is_described() -> None:
    keys = [field.alias or name for name, field in CorrelationEntry.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in TEXT + OVER_TIME and f"{key}:" not in OVER_TIME] == []
    assert [name for name in CORRELATION_TYPES if f"| `{name}` |" not in OVER_TIME] == []
