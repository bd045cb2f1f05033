"""JSON for the frozen types of the model: how plans are cached, states snapshotted, and findings cross process borders.

One converter (cattrs); times as ISO 8601 UTC text; unions of expressions tagged by type name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, get_type_hints

from cattrs import Converter
from cattrs.cols import is_namedtuple
from cattrs.strategies import configure_tagged_union

from engine.model.expressions import Expression
from engine.model.rules import Hole

T = TypeVar("T")


@cache
def converter() -> Converter:
    """Return the one converter; built on first use."""
    made = Converter(omit_if_default=True)
    made.register_unstructure_hook(datetime, lambda at: at.astimezone(UTC).isoformat())
    made.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    scalar = lambda value, _: value  # noqa: E731
    for union in (str | int | float, str | int | float | bool):
        made.register_structure_hook(union, scalar)
        made.register_unstructure_hook(union, lambda value: value)
    made.register_structure_hook(str | Hole, lambda part, _: part if isinstance(part, str) else made.structure(part, Hole))
    configure_tagged_union(Expression, made, tag_name="is")
    made.register_structure_hook_factory(is_namedtuple, lambda kind: _named_tuple(kind, made))
    return made


def _named_tuple(kind: type[Any], made: Converter) -> Callable[[Any, Any], Any]:
    """Return how a named tuple is read back; cattrs' own way does not resolve annotations that are text."""
    types = get_type_hints(kind).values()
    return lambda values, _: kind(*(made.structure(value, type_) for value, type_ in zip(values, types, strict=True)))


def dumps(value: Any) -> str:
    """Return `value` (a model type, or lists and mappings of them) as compact JSON."""
    return dumps_as(value, type(value))


def dumps_as(value: Any, declared: Any) -> str:
    """Return `value` as JSON in the form of its `declared` type: what a member of a union needs to be read back."""
    return json.dumps(converter().unstructure(value, unstructure_as=declared), ensure_ascii=False, separators=(",", ":"))


def loads(text: str, into: type[T]) -> T:
    """Return the value of type `into` that `dumps` wrote. Raises cattrs' ClassValidationError when it is not one."""
    return converter().structure(json.loads(text), into)
