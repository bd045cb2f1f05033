"""Labels of a file: fixed text, or a part of its path that `{path:regex}` extracts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.model.records import Labels

_OPEN = "{path:"


class LabelError(ValueError):
    """A label template that cannot be used; the message has the reason."""


def check_label(template: str) -> None:
    """Raise LabelError when `template` has an unclosed `{path:` or an expression that does not compile."""
    for part in _parts(template):
        if isinstance(part, tuple):
            _compiled(part[0])


def labels_of(path: str, templates: Mapping[str, str]) -> Labels:
    """Return the labels of `path`.

    `{path:regex}` becomes the first group of the first match of `regex` in the path (the whole match when it has no group). A
    label with an expression that does not match is left out.
    """
    filled = {name: _filled(template, path) for name, template in templates.items()}
    return {name: value for name, value in filled.items() if value is not None}


def _filled(template: str, path: str) -> str | None:
    texts: list[str] = []
    for part in _parts(template):
        if isinstance(part, str):
            texts.append(part)
            continue
        match = _compiled(part[0]).search(path)
        if match is None:
            return None
        texts.append(match[1] if match.re.groups else match[0])
    return "".join(texts)


def _parts(template: str) -> list[str | tuple[str]]:
    """Return the parts of a template in order: texts, and one-tuples of an expression. Braces in an expression balance."""
    parts: list[str | tuple[str]] = []
    rest = template
    while (start := rest.find(_OPEN)) >= 0:
        end = _closing(rest, start)
        parts += [rest[:start], (rest[start + len(_OPEN) : end],)]
        rest = rest[end + 1 :]
    return [*parts, rest]


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise LabelError(f"{text[start:]!r} has no closing brace")


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise LabelError(f"{expression!r} is not a regular expression: {error}") from None
