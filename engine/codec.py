"""JSON for the frozen types of the model: the form of cached plans, of state snapshots, and of findings between processes.

msgspec declares, reads and writes the types; times are RFC 3339 text. Types with many instances (`array_like`) are encoded as
lists, without the names of their fields.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()


def dumps(value: Any) -> str:
    """Return `value` (a model type, or lists and mappings of them) as compact JSON."""
    return _ENCODER.encode(value).decode()


def loads(text: str | bytes, into: type[T]) -> T:
    """Return the value of type `into` from the JSON of `dumps`. Raises msgspec's DecodeError when `text` is not one."""
    return cast(T, _decoder(cast(Hashable, into)).decode(text))


def plain(value: Any) -> Any:
    """Return `value` as JSON would return it: lists, mappings with text keys, scalars."""
    return msgspec.json.decode(_ENCODER.encode(value))


def made(value: Any, into: type[T]) -> T:
    """Return the value of type `into` from the result of `plain`. Raises msgspec's ValidationError when `value` is not one."""
    return msgspec.convert(value, into, str_keys=True)


def foreign(text: str | bytes, strict: bool = True) -> Any:
    """Return the value of a JSON text from another program, with the tolerance of Python's own reader, which accepts what
    msgspec rejects (NaN, 1e999). Half a surrogate pair becomes a question mark. Raises ValueError or RecursionError.

    Args:
        strict: whether an unescaped control character in a string is an error.
    """
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return _without_surrogates(json.loads(text, strict=strict))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


@cache
def _decoder(into: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(Any, into))
