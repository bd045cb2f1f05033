"""Errors of values in tocsin.yml: findings with diagnostic codes, carried through pydantic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from engine.dsl.codes import Code


def finding_error(code: Code, message: str, help: str = "") -> PydanticCustomError:
    """Return the error that becomes a finding of `code` at the place of the value."""
    return PydanticCustomError(code.id, "{message}", {"message": message, "help": help, "code": code.name})


def validated_by(parse: Callable[[str], object], code: Code, expected: str, example: str) -> BeforeValidator:
    """Return a validator that leaves text unchanged, and reports `code` when `parse` raises an error for it.

    `expected` names the valid values with their article, as in "a time zone".
    """

    def check(value: Any) -> Any:
        try:
            parse(value)
        except (ValueError, OSError, TypeError, LookupError):
            raise finding_error(code, f"`{value}` is not {expected}", example) from None
        return value

    return BeforeValidator(check, json_schema_input_type=str)
