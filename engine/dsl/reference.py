"""Generate the parts of docs/rules.md that follow from the code: keys, hole types, modifiers, functions, codes, rule excerpts.

A generated part stands between `<!-- begin NAME -->` and `<!-- end -->`; `make accept` regenerates it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.dsl.codes import Code
from engine.dsl.json_schema import rule_schema
from engine.dsl.meanings import CONTEXT_MEANINGS, FUNCTION_MEANINGS, MODIFIER_MEANINGS, UNIT_MEANINGS
from engine.dsl.patterns import TYPES

_PART = re.compile(r"(<!-- begin (?P<name>[^>]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
# path of a nested map -> the model of its keys
NESTED: Mapping[str, str] = {
    "explains[]": "ExplainsEntry",
    "explains[].within": "Within",
    "continues[]": "ContinuesEntry",
    "clear": "ClearEntry",
    "escalate[]": "EscalateEntry",
    "told_as[]": "ToldAsEntry",
    "runbook": "RunbookEntry",
    "runbook.cases[]": "CaseEntry",
    "runbook.fix[]": "StepEntry",
    "ko": "TitleTranslation",
    "told_as[].ko": "TitleTranslation",
    "runbook.ko": "RunbookTranslation",
    "runbook.cases[].ko": "CaseTranslation",
    "runbook.fix[].ko": "StepTranslation",
    "tests[]": "TestEntry",
    "correlation": "CorrelationEntry",
    "correlation.sooner": "SoonerEntry",
    "correlation.unless": "StopEntry",
    "correlation.after": "StopEntry",
}


def regenerated(text: str, rules: Path) -> str:
    """Return `text` with every generated part up to date; excerpts of rules are read from the folder `rules`.

    Raises KeyError for a part with an unknown name.
    """
    return with_parts(text, lambda name: _part(name, rules))


def with_parts(text: str, part_of: Callable[[str], str]) -> str:
    """Return `text` with the text of every generated part as `part_of` returns it for the name of the part."""
    return _PART.sub(lambda part: f"{part[1]}{part_of(part['name'])}\n{part[4]}", text)


def code_table(codes: Iterable[Code]) -> Iterator[str]:
    """Yield the lines of the table of these codes."""
    yield from ("| code | meaning |", "|---|---|")
    yield from (f"| {code.id} | {code.meaning} |" for code in codes)


def _part(name: str, rules: Path) -> str:
    kind, *arguments = name.split()
    if kind == "rule":
        return _piece(rules, arguments[0], arguments[1:])
    return "\n".join(_TABLES[kind]())


def _keys() -> Iterator[str]:
    schema = rule_schema()
    yield from ("| key | meaning |", "|---|---|")
    yield from (_row(key, key in schema["required"], property_) for key, property_ in schema["properties"].items())


def _nested() -> Iterator[str]:
    definitions = rule_schema()["$defs"]
    yield from ("| key | meaning |", "|---|---|")
    for place, model in NESTED.items():
        schema = definitions[model]
        for key, property_ in schema["properties"].items():
            yield _row(f"{place}.{key}", key in schema.get("required", ()), property_)


def _row(key: str, required: bool, schema: Mapping[str, Any]) -> str:
    words = ", ".join(f"`{word}`" for word in schema.get("enum", ()))
    meaning = f"{schema['description']} {f'One of {words}.' if words else ''}".strip()
    return f"| `{key}`{' (required)' if required else ''} | {meaning} |"


def _types() -> Iterator[str]:
    yield from ("| hole | takes |", "|---|---|", "| `{}` | the shortest text within the line; captures nothing |")
    for name, type_ in TYPES.items():
        short = "`{name}`, " if name == "word" else ""
        yield f"| {short}`{{name:{name}}}` | {type_.meaning} |"


def _table(head: str, meanings: Mapping[str, str]) -> Callable[[], Iterator[str]]:
    rows = (f"| {head} | meaning |", "|---|---|", *(f"| `{word}` | {meaning} |" for word, meaning in meanings.items()))
    return lambda: iter(rows)


_TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "keys": _keys,
    "nested": _nested,
    "types": _types,
    "modifiers": _table("modifier", MODIFIER_MEANINGS),
    "functions": _table("function", FUNCTION_MEANINGS),
    "context": _table("name", CONTEXT_MEANINGS),
    "units": _table("unit", UNIT_MEANINGS),
    "codes": lambda: code_table(code for code in Code if code.id < "TOC7"),
}


def _piece(rules: Path, id_: str, keys: list[str]) -> str:
    """Return the lines of these top-level keys of a rule as a YAML block, without comment lines."""
    text = next(rules.glob(f"*/{id_}.yml")).read_text(encoding="utf-8")
    sections = re.split(r"^(?=[a-z_]+:)", text, flags=re.MULTILINE)
    chosen = [part for part in sections if part.partition(":")[0] in keys]
    lines = [line for part in chosen for line in part.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(("```yaml", *lines, "```"))
