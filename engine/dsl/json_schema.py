"""The JSON Schema (2020-12) of rule files, generated from the loader's own models, for completion and checks in editors.

`tocsin rules lint` checks what a schema cannot express, such as undefined names and patterns that do not compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from engine.dsl.detection import FIELDS, MODIFIERS
from engine.dsl.meanings import MEANINGS
from engine.dsl.schema import RuleFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALAR = ["string", "number", "boolean"]  # the rule language reads every scalar as text; YAML does not

_ITEM: Mapping[str, Any] = {
    "description": "A pattern over the whole event; a list, any of which holds; or a map of fields, all of which hold.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Item"}},
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": rf"^({'|'.join(FIELDS)}|labels\.[a-z][a-z0-9_-]*)(\|({'|'.join(MODIFIERS)}))*$"},
            "additionalProperties": {"anyOf": [{"type": SCALAR}, {"type": "array", "items": {"type": SCALAR}}]},
        },
    ],
}
_DETECTION: Mapping[str, Any] = {
    "type": "object",
    "required": ["condition"],
    "minProperties": 2,
    "properties": {"condition": {"type": "string", "minLength": 1, "description": "An expression over items and captures."}},
    "propertyNames": {"pattern": "^[a-z_][a-z0-9_]*$"},
    "additionalProperties": {"$ref": "#/$defs/Item"},
}
_CONDITION: Mapping[str, Any] = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "additionalProperties": {"type": ["integer", "string"]}}]
}


def rule_schema() -> Mapping[str, Any]:
    """Return the schema of a rule file with a description of every key."""
    schema = RuleFile.model_json_schema(by_alias=True, mode="validation")
    definitions = {name: described(definition, MEANINGS[name]) for name, definition in schema.pop("$defs").items()}
    root = described(schema, MEANINGS["RuleFile"])
    root["properties"]["detection"] |= _DETECTION
    definitions["CorrelationEntry"]["properties"]["condition"] |= _CONDITION
    one_of = [{"required": ["detection"]}, {"required": ["correlation"]}]
    runbook_needed = {"anyOf": [{"required": ["runbook"]}, {"properties": {"severity": {"const": "info"}}}]}
    return {
        "$schema": DIALECT,
        **root,
        "oneOf": one_of,
        "allOf": [runbook_needed],
        "$defs": {**definitions, "Item": dict(_ITEM)},
    }


def models(model: type[BaseModel] = RuleFile) -> Mapping[str, type[BaseModel]]:
    """Return `model` and every model nested in it, by class name."""
    by_name: dict[str, type[BaseModel]] = {}
    pending: list[Any] = [model]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation.__name__ not in by_name:
            by_name[annotation.__name__] = annotation
            pending.extend(field.annotation for field in annotation.model_fields.values())
        pending.extend(getattr(annotation, "__args__", ()))
    return by_name


def described(schema: dict[str, Any], meanings: Mapping[str, str]) -> dict[str, Any]:
    """Return a generated object schema with the `meanings` of its keys added and its titles removed."""
    properties = {
        key: {**_loosened(value), "description": meanings[key]} for key, value in schema.get("properties", {}).items()
    }
    return {**{key: value for key, value in schema.items() if key != "title"}, "properties": properties}


def _loosened(schema: Any) -> Any:
    """Return `schema` without titles, defaults and null (no key may be empty); plain text accepts any scalar."""
    if isinstance(schema, list):
        return [_loosened(option) for option in schema]
    if not isinstance(schema, dict):
        return schema
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if "anyOf" in schema and len(options) == 1:
        return _loosened(options[0])
    loosened = {key: _loosened(value) for key, value in schema.items() if key not in ("title", "default", "anyOf")}
    if options:
        loosened["anyOf"] = _loosened(options)
    if loosened.get("type") == "string" and not {"pattern", "enum"} & loosened.keys():
        loosened["type"] = SCALAR
    return loosened
