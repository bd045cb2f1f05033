"""Runbooks with their numbers filled in: prose, settings, and commands that a tired person pastes into a shell.

A value that is missing reads `?` in prose, or what the rule says instead, and `${name:?}` in settings and commands: visible,
and a shell refuses to run it. A log value enters a command only if it fits the characters of its type;
else it counts as missing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from urllib.parse import quote

from msgspec import Struct

from engine.model.configs import printed_as
from engine.model.expressions import UNKNOWN, Environment, Expression, Result, evaluate, names
from engine.model.incidents import RenderedStep
from engine.model.rules import Hole, Rule, Step, Template

MISSING = "?"
FEW = 5  # steps: what a tired reader follows
MOST_CHOICES = 1000  # of values that a step asks for
MAX_VALUE_CHARS = 249  # Kafka's own limit on topic names (org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH)

_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?")
_NAME = re.compile(r"[\w.][\w.\-:/@+,=%#~\[\]()]*")
_CHARSETS: Mapping[str, re.Pattern[str]] = {
    "int": _NUMBER,
    "num": _NUMBER,
    "bytes": _NUMBER,
    "ms": _NUMBER,
    "tp": re.compile(r"[A-Za-z0-9._][A-Za-z0-9._\-]*"),
    "host": re.compile(r"[A-Za-z0-9.\[:][A-Za-z0-9.\-:_\]]*"),
    "hosts": re.compile(r"[A-Za-z0-9.\[][A-Za-z0-9.\-:_,\[\]]*"),
    "url": re.compile(r"https?://[A-Za-z0-9.\-_:/\[\]~%]+"),
    "list": re.compile(r"[\w.][\w.\-:,]*"),
    "time": re.compile(r"[0-9T:.\-+Z]+"),
    "path": re.compile(r"[\w./][\w.\-:/@+,=%~]*"),
}
_MEBI = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def prose(template: Template, environment: Environment) -> str:
    """Return `template` as text for people."""
    return "".join(part if isinstance(part, str) else _spoken(part, environment) for part in template.parts).strip()


def setting(template: Template, environment: Environment) -> str:
    """Return `template` as the value of a setting or the content of a file: unquoted, missing values visible."""
    return "".join(part if isinstance(part, str) else _checked(part, environment) for part in template.parts)


def command(argv: Iterable[Template], environment: Environment) -> str:
    """Return `argv` as one line for a POSIX shell: every argument quoted where it must be, no pipes, no expansion."""
    return " ".join(_argument(template, environment) for template in argv)


class RunbookText(Struct, frozen=True):
    """What a rule says, to be filled in."""

    title: Template
    cause: Template
    impact: Template


def words(rule: Rule, environment: Environment) -> RunbookText:
    """Return what `rule` says: in the words of the first of its cases that surely holds, its own where that one has none."""
    own = RunbookText(rule.title, rule.runbook.cause, rule.runbook.impact)
    case = next((each for each in rule.runbook.cases if evaluate(each.when, environment) is True), None)
    return own if case is None else RunbookText(case.title or own.title, case.cause, case.impact or own.impact)


def fitting(steps: Sequence[Step], environment: Environment) -> Sequence[Step]:
    """Return the steps that may fit, in their order: all that do not ask for what surely is not so. A step that asks for a name
    which was captured with several values fits when it does for one of them. The first FEW, when none may fit."""
    return [each for each in steps if each.when is None or _may_hold(each.when, environment)] or steps[:FEW]


def _may_hold(condition: Expression, environment: Environment) -> bool:
    values = {name: environment.get(f"{name}.all") for name in sorted(names(condition))}
    several = {name: each for name, each in values.items() if each and each != [environment.get(name, UNKNOWN)]}
    if not several:
        return evaluate(condition, environment) is not False
    chosen = islice(product(*several.values()), MOST_CHOICES)
    return any(evaluate(condition, {**environment, **dict(zip(several, each, strict=True))}) is not False for each in chosen)


def step(given: Step, environment: Environment, settings: Mapping[str, str] | None = None) -> RenderedStep:
    """Return a step of the fix with its numbers filled in.

    Args:
        settings: what the process runs with, as in Alert.settings: where the step sets one of them, it says what it is now.
    """
    return RenderedStep(
        do=prose(given.do, environment) + _now(given, settings or {}),
        where=given.where,
        set={name: setting(value, environment) for name, value in given.set.items()},
        also={name: setting(value, environment) for name, value in given.also.items()},
        file={name: setting(value, environment) for name, value in given.file.items()},
        run=command(given.run, environment),
        changes_state=given.changes_state,
    )


def _now(given: Step, settings: Mapping[str, str]) -> str:
    printed = ((setting, settings.get(" ".join(setting))) for name in given.set for setting in printed_as(given.where, name))
    known = dict.fromkeys(f"{name}={value}" for (_, name), value in printed if value is not None)
    return f" (now {', '.join(known)})" if known else ""


def human_bytes(number: float) -> str:
    """Return a size in the largest binary unit that leaves at least 1: `1.07 MiB`, `512 B`."""
    for unit, size in _MEBI:
        if abs(number) >= size:
            return f"{_short(number / size)} {unit}"
    return f"{_short(number)} B"


def human_ms(number: float) -> str:
    """Return a duration in the unit a person would say: `530 ms`, `60 s`, `10 min`, `2 h 15 min`."""
    seconds = number / 1000
    if abs(seconds) < 1:
        return f"{_short(number)} ms"
    if abs(seconds) < 120:
        return f"{_short(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def _spoken(hole: Hole, environment: Environment) -> str:
    values = (evaluate(each, environment) for each in (hole.expression, *hole.others))
    value = next((each for each in values if each is not UNKNOWN and each != ""), UNKNOWN)
    if value is UNKNOWN:
        return hole.instead or MISSING
    if isinstance(value, list | tuple):
        return ", ".join(_plain(each) for each in value)
    return _in_unit(hole.unit, value)


def _in_unit(unit: str, value: Result) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if unit == "bytes":
        return f"{int(value):,}"
    if unit == "ms":
        return human_ms(value)
    return human_bytes(value) if unit == "human" else _plain(value)


def _checked(hole: Hole, environment: Environment) -> str:
    """Return the value of `hole` if it fits its type's characters, else its placeholder."""
    value = evaluate(hole.expression, environment)
    if value is UNKNOWN:
        return _placeholder(hole, environment)
    text = ",".join(_plain(each) for each in value) if isinstance(value, list | tuple) else _plain(value)
    return text if _fits(text, hole.charset) else _placeholder(hole, environment)


def _fits(text: str, charset: str) -> bool:
    if charset == "json":  # written by a function of ours, from numbers and checked names
        return "'" not in text and text.isprintable()
    return len(text) <= MAX_VALUE_CHARS and _CHARSETS.get(charset, _NAME).fullmatch(text) is not None


def _placeholder(hole: Hole, environment: Environment) -> str:
    mentioned = sorted(names(hole.expression), key=lambda name: (name in environment, name))
    name = re.sub(r"\W", "_", mentioned[0].partition(".")[0]) if mentioned else "value"
    return f"${{{name}:?}}"


def _argument(template: Template, environment: Environment) -> str:
    rendered = [part if isinstance(part, str) else _checked(part, environment) for part in template.parts]
    if _is_url(template, rendered):
        rendered = [r if isinstance(p, str) else _escaped(p, r) for p, r in zip(template.parts, rendered, strict=True)]
    if not any(_is_placeholder(part) for part in rendered):
        return shlex.quote("".join(rendered))
    return "".join(part if _is_placeholder(part) else shlex.quote(part) for part in rendered if part)


def _is_url(template: Template, rendered: list[str]) -> bool:
    first = template.parts[0]
    return rendered[0].startswith(("http://", "https://")) or (isinstance(first, Hole) and first.charset == "url")


def _escaped(hole: Hole, text: str) -> str:
    return text if hole.charset in ("url", "hosts") or _is_placeholder(text) else quote(text, safe="")


def _is_placeholder(text: str) -> bool:
    return text.startswith("${") and text.endswith(":?}")


def _plain(value: Result) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
