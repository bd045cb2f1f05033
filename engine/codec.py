"""JSON for the frozen types of the model: how plans are cached, states snapshotted, and findings cross process borders.

One library (msgspec) declares, reads and writes them; times are RFC 3339 text. Those of which there are many (`array_like`) are
lists there, without the names of their fields.
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
    """Return the value of type `into` that `dumps` wrote. Raises msgspec's DecodeError when it is not one."""
    return cast(T, _decoder(cast(Hashable, into)).decode(text))


def plain(value: Any) -> Any:
    """Return `value` as it comes back from JSON: lists, mappings with text as keys, scalars."""
    return msgspec.json.decode(_ENCODER.encode(value))


def made(value: Any, into: type[T]) -> T:
    """Return the value of type `into` that `plain` was given. Raises msgspec's ValidationError when it is not one."""
    return msgspec.convert(value, into, str_keys=True)


def foreign(text: str | bytes, strict: bool = True) -> Any:
    """Return the value of a JSON text that somebody else wrote, as Python's own reader does: it takes what msgspec does not
    (NaN, 1e999). Half a surrogate pair, which no text can hold, is a question mark. Raises ValueError, or RecursionError.

    Args:
        strict: whether a control character that stands in a text as it is makes it no JSON.
    """
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return _whole(json.loads(text, strict=strict))


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return {_whole(key): _whole(each) for key, each in value.items()} if isinstance(value, dict) else value


@cache
def _decoder(into: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(Any, into))
