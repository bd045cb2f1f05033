"""The JSON Schema (2020-12) of tocsin.yml, generated from the models, for completion and checks in editors.

`tocsin config check` checks what a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from engine.config.meanings import MEANINGS
from engine.config.receivers import RECEIVER_TYPES
from engine.config.schema import ConfigFile, TaggedSourceEntry
from engine.dsl.json_schema import DIALECT, described
from engine.dsl.structure import TAG


def config_schema() -> Mapping[str, Any]:
    """Return the schema of tocsin.yml with a description of every key."""
    schema = ConfigFile.model_json_schema(by_alias=True, mode="validation")
    definitions = {name: described(definition, _meanings(name)) for name, definition in schema.pop("$defs").items()}
    for name, type_ in source_types().items():
        definitions[name]["properties"]["type"] = {"const": type_, "description": MEANINGS[name]["type"][0]}
    definitions["ReceiverEntry"]["oneOf"] = [{"required": [type_]} for type_ in RECEIVER_TYPES]
    return {"$schema": DIALECT, **described(schema, _meanings("ConfigFile")), "$defs": definitions}


def source_types() -> Mapping[str, str]:
    """Return the type of source by the class of its model."""
    union, *_ = get_args(TaggedSourceEntry)
    tagged = ((get_args(member)[0], get_args(member)[1].tag) for member in get_args(union))
    return {model.__name__: tag.removeprefix(TAG) for model, tag in tagged}


def _meanings(name: str) -> Mapping[str, str]:
    return {key: meaning for key, (meaning, _) in MEANINGS[name].items()}
