"""The JSON Schema takes every good rule, and refuses what a schema can tell to be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.dsl import builtin_rules
from engine.dsl.json_schema import rule_schema

SCHEMA = rule_schema()
GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
RULES = sorted(path for path in builtin_rules().glob("*/*.yml") if path.parent.name not in ("components", "formats"))
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
_TYPES: Mapping[str, Any] = {
    "string": str,
    "object": dict,
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def problems(value: Any, schema: Mapping[str, Any], at: str = "$") -> Iterator[str]:
    """Yield what is wrong with `value`: the keywords that the schema uses, each as JSON Schema 2020-12 has it."""
    if "$ref" in schema:
        yield from problems(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    for keyword, check in _CHECKS.items():
        if keyword in schema:
            yield from check(value, schema, at)


def _type(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    flag = isinstance(value, bool)
    if not any(isinstance(value, _TYPES[each]) and (not flag or each == "boolean") for each in wanted):
        yield f"{at} is no {' or '.join(wanted)}"


def _text(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{at} does not fit {schema['pattern']}"
        if len(value) < schema.get("minLength", 0):
            yield f"{at} is too short"


def _object(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    yield from (f"{at} lacks {key}" for key in schema.get("required", ()) if key not in value)
    if len(value) < schema.get("minProperties", 0):
        yield f"{at} has too few keys"
    for key, each in value.items():
        yield from problems(key, schema.get("propertyNames", {}), f"{at}.{key}")
        known = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
        yield from [f"{at} may not have {key}"] if known is False else problems(each, known, f"{at}.{key}")


def _array(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{at} is too short"
        for index, each in enumerate(value):
            yield from problems(each, schema.get("items", {}), f"{at}[{index}]")


def _counted(keyword: str, low: int, high: int) -> Any:
    def check(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
        fits = [each for each in schema[keyword] if not [*problems(value, each, at)]]
        if not low <= len(fits) <= (high or len(schema[keyword])):
            yield f"{at} fits {len(fits)} of {keyword}"

    return check


_CHECKS: Mapping[str, Any] = {
    "type": _type,
    "enum": lambda value, schema, at: [] if value in schema["enum"] else [f"{at} is none of {schema['enum']}"],
    "const": lambda value, schema, at: [] if value == schema["const"] else [f"{at} is not {schema['const']}"],
    "minimum": lambda value, schema, at: [f"{at} is too low"] if isinstance(value, int) and value < schema["minimum"] else [],
    **dict.fromkeys(("pattern", "minLength"), _text),
    **dict.fromkeys(("properties", "additionalProperties", "required"), _object),
    "items": _array,
    "anyOf": _counted("anyOf", 1, 0),
    "oneOf": _counted("oneOf", 1, 1),
    "allOf": lambda value, schema, at: [each for part in schema["allOf"] for each in problems(value, part, at)],
}


def read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_a_built_in_rule_is_valid(path: Path) -> None:
    assert [*problems(read(path), SCHEMA)] == []


@pytest.mark.parametrize("name", TELLABLE)
def test_a_broken_rule_is_not(name: str) -> None:
    assert [*problems(read(GOLDEN / f"{name}.yml"), SCHEMA)]


def test_every_key_has_a_description() -> None:
    objects = [SCHEMA, *SCHEMA["$defs"].values()]
    lacking = [key for each in objects for key, of in each.get("properties", {}).items() if not of.get("description")]
    assert lacking == []


def test_every_keyword_of_the_schema_is_checked_here() -> None:
    known = {*_CHECKS, "$ref", "$schema", "$defs", "description", "propertyNames", "minProperties", "minItems"}
    assert {*_keywords(SCHEMA)} <= known


def _keywords(schema: Any) -> Iterator[str]:
    for keyword, value in schema.items() if isinstance(schema, dict) else ():
        yield keyword
        if keyword in ("properties", "$defs"):
            yield from (each for inner in value.values() for each in _keywords(inner))
        elif keyword in ("anyOf", "oneOf", "allOf"):
            yield from (each for inner in value for each in _keywords(inner))
        elif keyword in ("items", "additionalProperties", "propertyNames"):
            yield from _keywords(value)


def test_the_package_of_the_field_agrees() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    checker = jsonschema.Draft202012Validator(SCHEMA)
    assert [path.stem for path in RULES if not checker.is_valid(read(path))] == []
    assert [name for name in TELLABLE if checker.is_valid(read(GOLDEN / f"{name}.yml"))] == []
