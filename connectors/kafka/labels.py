r"""Labels of a record: fixed text, or parts of its topic, key, host and file, or any field of a shipper's JSON.

`{key}` is the whole key, `{key:broker-(\d+)}` the first group of the first place where the expression matches it (the whole
match when it has no group). A field has its name first: `{field:kubernetes.namespace}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from engine.model.records import Labels

NAMES = ("topic", "key", "host", "file", "field")

Ask = Callable[[str, str], str | None]  # (one of NAMES, what stands behind the colon) -> the text; None: there is none

_HOLE = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")


def check_label(template: str) -> str | None:
    """Return what is wrong with `template`; None when nothing is."""
    for hole in _HOLE.finditer(template):
        name, argument = hole[1], hole[2]
        if name not in NAMES:
            return f"`{{{name}}}` is nothing that a record has; known: {', '.join(NAMES)}"
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
    """Return the names of the fields of a shipper's document that `templates` ask for, each once."""
    holes = (hole for template in templates.values() for hole in _HOLE.finditer(template))
    return tuple(dict.fromkeys(hole[2] for hole in holes if hole[1] == "field"))


def filled(templates: Mapping[str, str], ask: Ask) -> Labels:
    """Return the labels that `templates` make of one record; one that asks for what the record does not have is left out."""
    made = {name: _filled(template, ask) for name, template in templates.items()}
    return {name: value for name, value in made.items() if value is not None}


def _filled(template: str, ask: Ask) -> str | None:
    texts: list[str] = []
    for literal, name, argument in _parts(template):
        value = _taken(ask(name, argument), name, argument) if name else ""
        if value is None:
            return None
        texts += [literal, value]
    return "".join(texts)


def _taken(text: str | None, name: str, argument: str) -> str | None:
    if text is None or name == "field" or not argument:
        return text
    found = re.search(argument, text)
    return None if found is None else found[1] if found.re.groups else found[0]


@lru_cache(maxsize=256)
def _parts(template: str) -> tuple[tuple[str, str, str], ...]:
    """Split into (text, name, argument); the last has text alone."""
    parts, at = [], 0
    for hole in _HOLE.finditer(template):
        parts.append((template[at : hole.start()], hole[1], hole[2] or ""))
        at = hole.end()
    return (*parts, (template[at:], "", ""))
