"""The JSON Schema takes every good rule, and refuses what a schema can tell to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from engine.dsl import builtin_rules
from engine.dsl.files import collect
from engine.dsl.json_schema import rule_schema

SCHEMA = rule_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
RULES = [source.path for source in collect([builtin_rules()]) if source.kind == "rule"]
# broken rules of tests/golden/diagnostics whose mistake is one of structure
TELLABLE = (
    *("bad-component", "bad-id", "bad-scalars", "bad-where", "detects-nothing", "detects-twice", "empty-list", "empty-values"),
    *("escalate-to", "item-name", "list-file", "missing-keys", "missing-runbook", "no-condition", "sooner-without-naming"),
    *(
        "step-without-do",
        "unknown-field",
        "unknown-key",
        "unknown-modifier",
        "unknown-nested-key",
        "unknown-word",
        "wrong-kind",
    ),
)


def read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_a_built_in_rule_is_valid(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read(path))] == []


@pytest.mark.parametrize("name", TELLABLE)
def test_a_broken_rule_is_not(name: str) -> None:
    assert not VALIDATOR.is_valid(read(GOLDEN / f"{name}.yml"))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_key_has_a_description() -> None:
    objects = [SCHEMA, *SCHEMA["$defs"].values()]
    lacking = [key for each in objects for key, of in each.get("properties", {}).items() if not of.get("description")]
    assert lacking == []
