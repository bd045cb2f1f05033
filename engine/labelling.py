r"""Labels as templates: fixed text, parts of what a record has (its key, its host), or any field of its document. Pure.

`{key}` is the whole key, `{key:broker-(\d+)}` the first group of the first match of the expression in it (the whole match when
it has no group). `{field:kubernetes.namespace}` is the field of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from engine.model.records import Labels

FIELD = "field"

Ask = Callable[[str, str], str | None]  # (a name, the text behind the colon) -> its value; None: the record has none

_HOLE = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")


def wrong_label(template: str, names: Sequence[str]) -> str | None:
    """Return an error text for `template`, which may ask for `names`; None when it is valid."""
    for hole in _HOLE.finditer(template):
        name, argument = hole[1], hole[2]
        if name not in names:
            return f"`{{{name}}}` is no part of a record; use one of: {', '.join(names)}"
        if name == FIELD:
            if not argument:
                return "`{field:NAME}` needs the name of a field"
            continue
        try:
            re.compile(argument or "")
        except re.error as error:
            return f"{argument!r} is not a regular expression: {error}"
    rest = _HOLE.sub("", template)
    return f"{template!r} has a brace that is not closed" if re.search(r"\{\w+[:}]", rest) else None


def fields_asked(templates: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the fields in `templates`, in order and without duplicates."""
    return tuple(dict.fromkeys(hole[2] for hole in _holes(templates) if hole[1] == FIELD))


def asks_for(templates: Mapping[str, str], name: str) -> bool:
    """Return whether one of `templates` refers to `name`."""
    return any(hole[1] == name for hole in _holes(templates))


def filled(templates: Mapping[str, str], ask: Ask) -> Labels:
    """Return the labels of one record. A label with a value that the record does not have is left out."""
    labels = {name: _filled(template, ask) for name, template in templates.items()}
    return {name: value for name, value in labels.items() if value is not None}


def _holes(templates: Mapping[str, str]) -> Iterator[re.Match[str]]:
    return (hole for template in templates.values() for hole in _HOLE.finditer(template))


def _filled(template: str, ask: Ask) -> str | None:
    texts: list[str] = []
    for literal, name, argument in _parts(template):
        value = _extracted(ask(name, argument), name, argument) if name else ""
        if value is None:
            return None
        texts += [literal, value]
    return "".join(texts)


def _extracted(text: str | None, name: str, argument: str) -> str | None:
    if text is None or name == FIELD or not argument:
        return text
    match = re.search(argument, text)
    return None if match is None else match[1] if match.re.groups else match[0]


@lru_cache(maxsize=256)
def _parts(template: str) -> tuple[tuple[str, str, str], ...]:
    """Return the parts of a template as (literal text, name, argument of the hole behind it); the last has a text only."""
    parts, at = [], 0
    for hole in _HOLE.finditer(template):
        parts.append((template[at : hole.start()], hole[1], hole[2] or ""))
        at = hole.end()
    return (*parts, (template[at:], "", ""))
