r"""Labels of a record: fixed text, parts of its topic, key, host and file, or any field of a shipper's JSON document.

`{key}` is the whole key, `{key:broker-(\d+)}` the first group of the first match of the expression in it (the whole match when
it has no group). `{field:kubernetes.namespace}` is the field of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from engine.model.records import Labels

NAMES = ("topic", "key", "host", "file", "field")

Ask = Callable[[str, str], str | None]  # (one of NAMES, the text behind the colon) -> its value; None: the record has none

_HOLE = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")


def check_label(template: str) -> str | None:
    """Return an error text for `template`; None when it is valid."""
    for hole in _HOLE.finditer(template):
        name, argument = hole[1], hole[2]
        if name not in NAMES:
            return f"`{{{name}}}` is no part of a record; use one of: {', '.join(NAMES)}"
        if name == "field":
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
    holes = (hole for template in templates.values() for hole in _HOLE.finditer(template))
    return tuple(dict.fromkeys(hole[2] for hole in holes if hole[1] == "field"))


def filled(templates: Mapping[str, str], ask: Ask) -> Labels:
    """Return the labels of one record. A label with a value that the record does not have is left out."""
    labels = {name: _filled(template, ask) for name, template in templates.items()}
    return {name: value for name, value in labels.items() if value is not None}


def _filled(template: str, ask: Ask) -> str | None:
    texts: list[str] = []
    for literal, name, argument in _parts(template):
        value = _extracted(ask(name, argument), name, argument) if name else ""
        if value is None:
            return None
        texts += [literal, value]
    return "".join(texts)


def _extracted(text: str | None, name: str, argument: str) -> str | None:
    if text is None or name == "field" or not argument:
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
