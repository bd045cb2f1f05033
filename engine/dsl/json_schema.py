"""The JSON Schema (2020-12) of rule files: the loader's own model, for editors that complete and check while one writes.

What a schema cannot tell (names that nothing defines, patterns that do not compile) `tocsin rules lint` says.
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
    """Return the schema of a rule file, with a description for every key."""
    made = RuleFile.model_json_schema(by_alias=True, mode="validation")
    definitions = {name: _described(name, each) for name, each in made.pop("$defs").items()}
    root = _described("RuleFile", made)
    root["properties"]["detection"] |= _DETECTION
    definitions["CorrelationEntry"]["properties"]["condition"] |= _CONDITION
    either = [{"required": ["detection"]}, {"required": ["correlation"]}]
    told = {"anyOf": [{"required": ["runbook"]}, {"properties": {"severity": {"const": "info"}}}]}
    return {"$schema": DIALECT, **root, "oneOf": either, "allOf": [told], "$defs": {**definitions, "Item": dict(_ITEM)}}


def models(model: type[BaseModel] = RuleFile) -> Mapping[str, type[BaseModel]]:
    """Return `model` and every model inside it by name."""
    found: dict[str, type[BaseModel]] = {}
    waiting: list[Any] = [model]
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and issubclass(each, BaseModel) and each.__name__ not in found:
            found[each.__name__] = each
            waiting.extend(field.annotation for field in each.model_fields.values())
        waiting.extend(getattr(each, "__args__", ()))
    return found


def _described(name: str, made: dict[str, Any]) -> dict[str, Any]:
    """Return a generated object with the meanings of its keys and without what only repeats them."""
    properties = {key: {**_loosened(value), "description": MEANINGS[name][key]} for key, value in made["properties"].items()}
    return {**{key: value for key, value in made.items() if key != "title"}, "properties": properties}


def _loosened(schema: Any) -> Any:
    """Return `schema` without titles, defaults and null (no key may be empty), and with any scalar where text is read."""
    if isinstance(schema, list):
        return [_loosened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if "anyOf" in schema and len(options) == 1:
        return _loosened(options[0])
    left = {key: _loosened(value) for key, value in schema.items() if key not in ("title", "default", "anyOf")}
    if options:
        left["anyOf"] = _loosened(options)
    if left.get("type") == "string" and not {"pattern", "enum"} & left.keys():
        left["type"] = SCALAR
    return left
