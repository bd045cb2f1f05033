"""docs/rules.md says what is implemented."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from engine.dsl import builtin_rules, lint
from engine.dsl.detection import FIELDS, MODIFIERS
from engine.dsl.json_schema import models, rule_schema
from engine.dsl.meanings import CONTEXT_MEANINGS, FUNCTION_MEANINGS, MEANINGS, MODIFIER_MEANINGS, UNIT_MEANINGS
from engine.dsl.patterns import TYPES
from engine.dsl.reference import regenerated
from engine.dsl.schema import (
    CORRELATION_TYPES,
    PLACES,
    STATUSES,
    ComponentFile,
    CorrelationEntry,
    DialectFile,
    FormatFile,
    RuleFile,
)
from engine.dsl.templates import CONTEXT, SUFFIXES, UNITS
from engine.model.expressions import FUNCTIONS
from engine.model.rules import COMPONENTS, SEVERITIES

DOCS = Path(__file__).parents[3] / "docs"
PAGE, SCHEMA = DOCS / "rules.md", DOCS / "rule.schema.json"
OVER_TIME = (DOCS / "correlations.md").read_text(encoding="utf-8")
TEXT = regenerated(PAGE.read_text(encoding="utf-8"), builtin_rules())


def current(path: Path, text: str) -> str:
    """Return what `path` holds; `make accept` writes `text` to it first."""
    if os.environ.get("TOCSIN_ACCEPT") == "1":
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def test_what_is_generated_is_up_to_date() -> None:
    assert current(PAGE, TEXT) == TEXT, "docs/rules.md is behind the code; see make accept"


def test_the_published_schema_is_that_of_the_loader() -> None:
    wanted = json.dumps(rule_schema(), ensure_ascii=False, indent=2) + "\n"
    assert current(SCHEMA, wanted) == wanted, "docs/rule.schema.json is behind the code; see make accept"


def test_every_word_has_a_meaning() -> None:
    assert {*MODIFIER_MEANINGS} == {*MODIFIERS}
    assert {each.partition("(")[0] for each in FUNCTION_MEANINGS} == {*FUNCTIONS}
    assert {*CONTEXT_MEANINGS} == {*CONTEXT}
    assert {*UNIT_MEANINGS} == {*UNITS}
    assert all(type_.meaning for type_ in TYPES.values())


@pytest.mark.parametrize("root", [RuleFile, ComponentFile, DialectFile, FormatFile])
def test_every_key_has_a_meaning(root: type[RuleFile]) -> None:
    for name, model in models(root).items():
        assert {*MEANINGS[name]} == {field.alias or key for key, field in model.model_fields.items()}, name


def test_an_unknown_part_is_no_part() -> None:
    with pytest.raises(KeyError, match="nothing"):
        regenerated("<!-- begin nothing -->\n<!-- end -->", builtin_rules())


def test_the_example_is_a_rule_without_a_finding(tmp_path: Path) -> None:
    example = TEXT.partition("```yaml\n")[2].partition("```")[0]
    rule = tmp_path / "connect-record-too-large-client.yml"
    rule.write_text(example)
    shipped = [builtin_rules() / name for name in ("connect/connect-task-killed.yml", "formats", "terms")]
    findings = lint([rule, *shipped])
    assert [finding.one_line() for finding in findings if finding.path == str(rule)] == []


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


@pytest.mark.parametrize("model", [RuleFile, ComponentFile, DialectFile, FormatFile])
def test_every_key_is_named(model: type[RuleFile]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in TEXT] == []


def test_every_key_and_type_of_correlations_is_described() -> None:
    keys = [field.alias or name for name, field in CorrelationEntry.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in TEXT + OVER_TIME and f"{key}:" not in OVER_TIME] == []
    assert [name for name in CORRELATION_TYPES if f"| `{name}` |" not in OVER_TIME] == []
