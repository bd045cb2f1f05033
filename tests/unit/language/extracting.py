"""The texts that the code asks a catalogue for: `words("...")`, `words.counted(...)`, `marked(...)`, and `worded(...)` and
`frame(...)`, which are stored in English and recognised; and `_("...")` and `counted(...)` of the templates of the pages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polib
from jinja2 import Environment, nodes

from engine.language.catalogue import FRAME, SENTENCE

ROOT = Path(__file__).parents[3]
Message = tuple[str, str, str]  # context, text, text for many
_CALLS = {"words": 1, "worded": 1, "frame": 1, "marked": None}
_CONTEXTS = {"worded": SENTENCE, "frame": FRAME}


def messages() -> dict[Message, str]:
    """Return every message of the code with its first place, in the order of files and lines."""
    places: dict[Message, str] = {}
    for path, calls in _calls().items():
        for message in (message for call in calls for message in _messages(call)):
            places.setdefault(message, path)
    for path, message in _of_templates():
        places.setdefault(message, path)
    return places


def _of_templates() -> Iterator[tuple[str, Message]]:
    for file in sorted((ROOT / "engine/web/templates").glob("*.html")):
        calls = Environment().parse(file.read_text("utf-8")).find_all(nodes.Call)
        for call in calls:
            name = call.node.name if isinstance(call.node, nodes.Name) else ""
            texts = [argument.value for argument in call.args if isinstance(argument, nodes.Const)]
            if name == "_" and texts:
                yield file.relative_to(ROOT).as_posix(), ("", texts[0], "")
            elif name == "counted":
                yield file.relative_to(ROOT).as_posix(), ("", texts[0], texts[1])


def unreadable() -> list[str]:
    """Return the places of texts that are put together before they are looked up, which nothing can extract."""
    return [
        f"{path}:{call.lineno}"
        for path, calls in _calls().items()
        for call in calls
        if _name(call) in _CALLS and any(isinstance(argument, ast.JoinedStr) for argument in call.args)
    ]


@cache
def _calls() -> dict[str, list[ast.Call]]:
    """Return all calls in each file of the code, by its path."""
    files = sorted(file for folder in ("engine", "connectors") for file in (ROOT / folder).rglob("*.py"))
    trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text("utf-8")) for file in files}
    return {path: [node for node in ast.walk(tree) if isinstance(node, ast.Call)] for path, tree in trees.items()}


def catalogue(earlier: polib.POFile, wanted: dict[Message, str]) -> polib.POFile:
    """Return the catalogue of `wanted` with the translations of `earlier`; those that are missing are empty."""
    translations = {(entry.msgctxt or "", entry.msgid, entry.msgid_plural): entry for entry in earlier}
    new = polib.POFile(wrapwidth=120)
    new.metadata = earlier.metadata
    for (context, text, many), place in wanted.items():
        entry = translations.get((context, text, many))
        translation = "" if entry is None else entry.msgstr_plural.get(0, "") if many else entry.msgstr
        new.append(
            polib.POEntry(
                msgid=text,
                msgid_plural=many,
                msgctxt=context or None,
                msgstr="" if many else translation,
                msgstr_plural={0: translation} if many else {},
                occurrences=[(place, "")],
            )
        )
    return new


def _messages(call: ast.Call) -> Iterator[Message]:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "counted":
        one, many = (str(argument.value) for argument in call.args[:2] if isinstance(argument, ast.Constant))
        yield "", one, many
    name = _name(call)
    if name in _CALLS:
        texts = [argument.value for argument in call.args[: _CALLS[name]] if isinstance(argument, ast.Constant)]
        yield from ((_CONTEXTS.get(name, ""), str(text), "") for text in texts)


def _name(call: ast.Call) -> str:
    """Return the name of the called function; empty for a method."""
    return call.func.id if isinstance(call.func, ast.Name) else ""
