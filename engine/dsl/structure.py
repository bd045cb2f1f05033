"""Check a document against a schema model, and report each error at its place in the file."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from engine.dsl.codes import Code
from engine.dsl.document import Loc, RuleDocument, TextNode, plain
from engine.dsl.report import Report, did_you_mean

M = TypeVar("M", bound=BaseModel)

TAG = "type="  # prefix of the tags of a schema's unions; pydantic adds them to error locations, though no document has them

_KINDS = {"string": "text", "list": "a list", "tuple": "a list", "dict": "a map", "model": "a map"}
_ROUNDS = 8  # a wrong value may leave a map that is wrong without it, and so on outwards
_BARE = re.compile(r"-{0,2}[A-Za-z_./][\w./=-]*")  # words that YAML takes as text without quotes


def check(document: RuleDocument, report: Report, model: type[M], defaults: Mapping[str, Any]) -> M | None:
    """Return the document as `model`; every error becomes a finding.

    Wrong values are left out and missing ones come from `defaults`, so that later checks still see the rest of the file.
    None when that does not validate either.
    """
    data = plain(document.root)
    for round_number in range(_ROUNDS):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            if round_number == 0:
                for detail in errors:
                    _report_error(document, report, model, detail)
            data = _without(data, [_untagged(detail["loc"]) for detail in errors], defaults)
    return None


def _report_error(document: RuleDocument, report: Report, model: type[BaseModel], detail: ErrorDetails) -> None:
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
        help = _below(model, str(loc[-1]), keys) if len(loc) == 1 else ""
        report.add(Code.UNKNOWN_KEY, document.key(loc), f"unknown key `{loc[-1]}`", help or did_you_mean(str(loc[-1]), keys))
    elif kind == "too_short":
        report.add(Code.EMPTY, document.find(loc), f"`{_label(loc)}` must not be empty")
    else:
        expected = next((words for name, words in _KINDS.items() if kind.startswith(name)), "of another kind")
        node = document.find(loc)
        help = as_list(node.value) if expected == "a list" and isinstance(node, TextNode) else ""
        report.add(Code.WRONG_KIND, node, f"`{_label(loc)}` must be {expected}", help)


def _untagged(loc: Loc) -> tuple[str | int, ...]:
    return tuple(step for step in loc if not (isinstance(step, str) and step.startswith(TAG)))


def _sentence(message: str) -> str:
    return message if message.startswith("must") else f"is wrong: {message}"


def _label(loc: Loc) -> str:
    """Return `runbook.fix[0].do` for ("runbook", "fix", 0, "do")."""
    label = ""
    for step in loc:
        label += f"[{step}]" if isinstance(step, int) else f".{step}" if label else str(step)
    return label or "the file"


def _purpose(model: type[BaseModel], loc: Loc) -> str:
    owner = _model_at(model, loc[:-1])
    purpose = (owner.__doc__ or "").strip().partition("\n")[0] if owner else ""
    return f"needed in {purpose}".rstrip(".") if purpose else ""


def as_list(text: str) -> str:
    """Return the help line that writes `text`, the words of a shell, as a YAML list."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return f"write [{', '.join(word if _BARE.fullmatch(word) else json.dumps(word, ensure_ascii=False) for word in words)}]"


def _below(model: type[BaseModel], word: str, keys: Sequence[str]) -> str:
    """Return a help line when `word` is nearer to a key one level below `model` than to its own `keys`; otherwise empty.

    A model may list other names of its keys as `also_called`.
    """
    places: dict[str, str] = {}
    for name, field in model.model_fields.items():
        if (inner := _model_in(field.annotation)) is not None:
            also_called: Mapping[str, str] = getattr(inner, "also_called", {})
            for key in (*_keys_at(inner, ()), *also_called):
                places.setdefault(key, f"`{also_called.get(key, key)}` below `{name}`")
    if word in places:
        return f"did you mean {places[word]}?"
    near = get_close_matches(word, [*keys, *places], n=1, cutoff=0.8)
    return f"did you mean {places[near[0]]}?" if near and near[0] not in keys else ""


def _keys_at(model: type[BaseModel], loc: Loc) -> list[str]:
    owner = _model_at(model, loc)
    return [field.alias or name for name, field in owner.model_fields.items()] if owner else []


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """Return the schema model of the map at `loc`; None when there is none."""
    annotation: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        if step.startswith(TAG):
            annotation = _tagged(annotation, step)
            continue
        if get_origin(annotation) in (dict, Mapping):
            annotation = get_args(annotation)[1]  # the step is a key of the user's own
            continue
        owner = _model_in(annotation)
        fields = {field.alias or name: field for name, field in owner.model_fields.items()} if owner else {}
        annotation = fields[step].annotation if step in fields else None
    return _model_in(annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _tagged(annotation: Any, tag: str) -> Any:
    """Return the member with the tag `tag` of a union inside `annotation`; None when there is none."""
    parts = get_args(annotation)
    if Tag(tag) in parts:
        return parts[0]
    return next((member for part in parts if (member := _tagged(part, tag)) is not None), None)


def _without(data: Any, locs: list[tuple[int | str, ...]], defaults: Mapping[str, Any]) -> Any:
    """Return a copy of `data` without the values at `locs`; top-level keys get their default instead."""
    remaining = copy.deepcopy(data)
    for loc in sorted(locs, key=lambda steps: [str(step).zfill(9) for step in steps], reverse=True):
        _remove(remaining, loc)
    for key in {loc[0] for loc in locs if loc}:
        if key not in remaining and key in defaults:
            remaining[key] = defaults[str(key)]
    return remaining


def _remove(data: Any, loc: tuple[int | str, ...]) -> None:
    """Delete the value at `loc`; when it is not there (a missing key), delete the map that lacks it."""
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
