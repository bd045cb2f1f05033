"""Check a document against a schema model, and say each error where the file has it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from engine.dsl.codes import Code
from engine.dsl.document import Loc, RuleDocument, plain
from engine.dsl.report import Report, did_you_mean

M = TypeVar("M", bound=BaseModel)

TAG = "type="  # begins the tags of a schema's unions; pydantic puts them into places, where a document has no such step

_KINDS = {"string": "text", "list": "a list", "tuple": "a list", "dict": "a map", "model": "a map"}
_ROUNDS = 4


def check(document: RuleDocument, report: Report, model: type[M], defaults: Mapping[str, Any]) -> M | None:
    """Return the document as `model`; every error becomes a finding.

    What is wrong is left out and what is missing comes from `defaults`, so that later checks still see the rest of the
    file; None when even that does not fit.
    """
    data = plain(document.root)
    for round_number in range(_ROUNDS):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            if round_number == 0:
                for detail in errors:
                    _say(document, report, model, detail)
            data = _without(data, [_untagged(detail["loc"]) for detail in errors], defaults)
    return None


def _say(document: RuleDocument, report: Report, model: type[BaseModel], detail: ErrorDetails) -> None:
    kind, tagged, loc = detail["type"], detail["loc"], _untagged(detail["loc"])
    context = detail.get("ctx", {})
    if kind.startswith("TOC"):
        report.add(
            Code[context["code"]], document.find(loc), f"`{_label(loc)}` {_sentence(context['message'])}", context["help"]
        )
    elif kind == "missing":
        report.add(Code.MISSING_KEY, document.find(loc[:-1]), f"`{_label(loc)}` is missing", _purpose(model, tagged))
    elif kind == "extra_forbidden":
        keys = _keys_at(model, tagged[:-1])
        report.add(Code.UNKNOWN_KEY, document.key(loc), f"unknown key `{loc[-1]}`", did_you_mean(str(loc[-1]), keys))
    elif kind == "too_short":
        report.add(Code.EMPTY, document.find(loc), f"`{_label(loc)}` must not be empty")
    else:
        wanted = next((words for name, words in _KINDS.items() if kind.startswith(name)), "of another kind")
        report.add(Code.WRONG_KIND, document.find(loc), f"`{_label(loc)}` must be {wanted}")


def _untagged(loc: Loc) -> tuple[str | int, ...]:
    return tuple(step for step in loc if not (isinstance(step, str) and step.startswith(TAG)))


def _sentence(message: str) -> str:
    return message if message.startswith("must") else f"is wrong: {message}"


def _label(loc: Loc) -> str:
    """Return `runbook.fix[0].do` for ("runbook", "fix", 0, "do")."""
    shown = ""
    for step in loc:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if shown else str(step)
    return shown or "the file"


def _purpose(model: type[BaseModel], loc: Loc) -> str:
    owner = _model_at(model, loc[:-1])
    purpose = (owner.__doc__ or "").strip().partition("\n")[0] if owner else ""
    return f"needed in {purpose}".rstrip(".") if purpose else ""


def _keys_at(model: type[BaseModel], loc: Loc) -> list[str]:
    owner = _model_at(model, loc)
    return [field.alias or name for name, field in owner.model_fields.items()] if owner else []


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """Return the schema model that describes the map at `loc`."""
    found: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        if step.startswith(TAG):
            found = _tagged(found, step)
            continue
        owner = _model_in(found)
        fields = {field.alias or name: field for name, field in owner.model_fields.items()} if owner else {}
        found = fields[step].annotation if step in fields else None
    return _model_in(found)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _tagged(annotation: Any, tag: str) -> Any:
    """Return the member of a union inside `annotation` that bears `tag`."""
    parts = get_args(annotation)
    if Tag(tag) in parts:
        return parts[0]
    return next((found for part in parts if (found := _tagged(part, tag)) is not None), None)


def _without(data: Any, locs: list[tuple[int | str, ...]], defaults: Mapping[str, Any]) -> Any:
    """Return a copy of `data` without what stands at `locs`; top-level keys get their default instead."""
    left = copy.deepcopy(data)
    for loc in sorted(locs, key=lambda steps: [str(step).zfill(9) for step in steps], reverse=True):
        _remove(left, loc)
    for key in {loc[0] for loc in locs if loc}:
        if key not in left and key in defaults:
            left[key] = defaults[str(key)]
    return left


def _remove(data: Any, loc: tuple[int | str, ...]) -> None:
    """Drop what stands at `loc`; when it is not there (a missing key), drop the map that lacks it."""
    chain = [data]
    for step in loc[:-1]:
        try:
            chain.append(chain[-1][step])
        except (KeyError, IndexError, TypeError):
            return
    if loc and _drop(chain[-1], loc[-1]):
        return
    if len(loc) > 1:
        _drop(chain[-2], loc[-2])


def _drop(parent: Any, step: int | str) -> bool:
    if isinstance(parent, dict) and step in parent:
        del parent[step]
        return True
    if isinstance(parent, list) and isinstance(step, int) and step < len(parent):
        del parent[step]
        return True
    return False
