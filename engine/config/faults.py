"""How the structure of tocsin.yml reports what is wrong with a value: findings with codes, carried through pydantic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from engine.dsl.codes import Code


def wrong(code: Code, message: str, help: str = "") -> PydanticCustomError:
    """Return the error that becomes a finding of `code` at the value's place."""
    return PydanticCustomError(code.id, "{message}", {"message": message, "help": help, "code": code.name})


def unavailable(what: str, instead: str) -> PydanticCustomError:
    """Return the error for something that this version does not have; `what` ends in is or are."""
    return wrong(Code.NOT_AVAILABLE, f"{what} not available in this version", instead)


def checked(holds: Callable[[str], object], code: Code, what: str, example: str) -> BeforeValidator:
    """Return a validator that leaves text as it is when `holds` raises nothing over it."""

    def check(value: Any) -> Any:
        try:
            holds(value)
        except (ValueError, OSError, TypeError, LookupError):
            raise wrong(code, f"`{value}` is not {what}", example) from None
        return value

    return BeforeValidator(check)
