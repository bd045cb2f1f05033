"""Renders runbooks with their values filled in: prose, settings, and commands to paste into a shell.

A missing value is `<name>` in prose, or the alternative that the rule gives, and `${name:?}` in settings and commands: it is
visible, and a shell refuses to run it. A step whose file needs a missing value says what to find out instead of writing the
file. A value from a log is used in a command only if it fits the characters of its type; else it counts as missing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from urllib.parse import quote

from msgspec import Struct

from engine.language import words_of
from engine.model.configs import printed_as
from engine.model.expressions import LANGUAGE, UNKNOWN, Environment, Expression, Result, evaluate, holds, names
from engine.model.incidents import RenderedStep
from engine.model.placeholders import placeholder, unfilled
from engine.model.rules import HOST, OMITTED, Hole, Rule, Step, Template
from engine.model.words import ENGLISH, filled, frame

_NOW = frame("{do} (now {settings})")
_UNKNOWN = frame("{do}. Find out first, as these lines do not tell it: {names}; then write {files}")
_TWO_STOPS = re.compile(r"(?<=[\w)\]\"'`])\.\.(?=\s|$)")  # of a value that ends a sentence, and of the text behind it
FEW = 5  # steps that are shown when none may fit
MOST_CHOICES = 1000  # combinations of captured values that the condition of a step is evaluated for
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
    "path": re.compile(r"[\w./][\w.\-:/@+,=%~]*|[A-Za-z]:\\[\w.\-\\@+,=%~]*"),  # the second one of Windows
}
_REMARK = re.compile(rf" ?\(([^()]*{OMITTED}[^()]*)\)")
_PART = re.compile(r".+?(?:[,;] |$)", re.DOTALL)  # of a remark, with the comma or semicolon behind it
_PREPOSITIONS = "at|by|for|from|in|of|on|to|with"
_KINDS = "broker|connector|controller|epoch|group|member|node|offset|partition|pod|producer|shard|store|task|topic"
# The place of a missing value, with what means nothing without it: a colon, `at`, or `at offset`.
_OMITTED_WORD = re.compile(
    rf"[:;,] {OMITTED}(?=[.;,:]|$)|(?: (?:{_PREPOSITIONS})(?: (?:{_KINDS}))?)? {OMITTED}(?!\w)|{OMITTED}"
)
_ADDRESS = re.compile(r"(?:[A-Za-z_+]+://)?(?:[^/@\s]*@)?(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^/:,\s]+)(?![^/,\s]*:[^/,\s]*:))")
_ADDRESSES = re.compile(r"[\w.:/@\[\]%+-]+(?:, ?[\w.:/@\[\]%+-]+)*", re.ASCII)
_MEBI = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def prose(template: Template, environment: Environment) -> str:
    """Return `template` as text for people, in the language of `environment` where it has that."""
    parts = template.translations.get(str(environment.get(LANGUAGE, "")), template.parts)
    text = "".join(part if isinstance(part, str) else _prose_value(part, environment) for part in parts).strip()
    text = _without_omitted(text) if OMITTED in text else text
    return _TWO_STOPS.sub(".", text) if ".." in text else text


def setting(template: Template, environment: Environment) -> str:
    """Return `template` as the value of a setting or the content of a file: unquoted, missing values visible."""
    return "".join(part if isinstance(part, str) else _checked(part, environment) for part in template.parts)


def command(argv: Iterable[Template], environment: Environment) -> str:
    """Return `argv` as one line for a POSIX shell: every argument quoted where it must be, no pipes, no expansion."""
    return " ".join(_argument(template, environment) for template in argv)


class RunbookText(Struct, frozen=True):
    """The templates of a rule's text."""

    title: Template
    cause: Template
    impact: Template


def words(rule: Rule, environment: Environment) -> RunbookText:
    """Return the text of the first case of `rule` whose `when` is true; the parts that a case lacks are the rule's own."""
    own = RunbookText(rule.title, rule.runbook.cause, rule.runbook.impact)
    case = next((case for case in rule.runbook.cases if evaluate(case.when, environment) is True), None)
    return own if case is None else RunbookText(case.title or own.title, case.cause, case.impact or own.impact)


def fitting(steps: Sequence[Step], environment: Environment) -> Sequence[Step]:
    """Return the steps that may fit, in their order: those without a condition, or with one that holds.

    A condition over a capture with several values may hold if it does for one of them. When no step may fit, the first FEW are
    returned.
    """
    return [step for step in steps if step.when is None or _may_hold(step.when, environment)] or steps[:FEW]


def _may_hold(condition: Expression, environment: Environment) -> bool:
    values = {name: environment.get(f"{name}.all") for name in sorted(names(condition))}
    several = {name: of_name for name, of_name in values.items() if of_name and of_name != [environment.get(name, UNKNOWN)]}
    if not several:
        return holds(condition, environment)
    choices = islice(product(*several.values()), MOST_CHOICES)
    environments = ({**environment, **dict(zip(several, choice, strict=True))} for choice in choices)
    return any(holds(condition, chosen) for chosen in environments)


def step(fix_step: Step, environment: Environment, settings: Mapping[str, str] | None = None) -> RenderedStep:
    """Return a step of the fix with its values filled in.

    Args:
        settings: the settings that the process runs with, as in Alert.settings; a step that sets one of them shows its present
            value.
    """
    files = {name: setting(value, environment) for name, value in fix_step.file.items()}
    do, present = prose(fix_step.do, environment), _present(fix_step, settings or {})
    do = filled(_NOW, {"do": do, "settings": present}) if present else do
    if lacking := unfilled(files.values()):
        values = {"do": do, "names": " and ".join(name.replace("_", " ") for name in lacking), "files": ", ".join(files)}
        do = filled(_UNKNOWN, values)
        files = {}
    return RenderedStep(
        do=do,
        where=fix_step.where,
        set={name: setting(value, environment) for name, value in fix_step.set.items()},
        also={name: setting(value, environment) for name, value in fix_step.also.items()},
        file=files,
        run=command(fix_step.run, environment),
        changes_state=fix_step.changes_state,
    )


def _present(fix_step: Step, settings: Mapping[str, str]) -> str:
    """Return the settings of a step as the process runs with them; empty when it printed none."""
    printed = (
        (setting, settings.get(" ".join(setting))) for name in fix_step.set for setting in printed_as(fix_step.where, name)
    )
    return ", ".join(dict.fromkeys(f"{name}={value}" for (_, name), value in printed if value is not None))


def human_bytes(number: float) -> str:
    """Return a size in the largest binary unit that leaves at least 1: `1.07 MiB`, `512 B`."""
    for unit, size in _MEBI:
        if abs(number) >= size:
            return f"{_short(number / size)} {unit}"
    return f"{_short(number)} B"


def host_of(address: str) -> str:
    """Return the name in an address or URL, the first of several; Java's `name/ip:port` too. An address that is none of these
    stays as it is, such as an IPv6 address without a port.
    """
    match = _ADDRESS.match(address.removeprefix("/")) if _ADDRESSES.fullmatch(address) else None
    return (match["v6"] or match["name"]) if match else address


def human_ms(number: float) -> str:
    """Return a duration in a readable unit: `530 ms`, `60 s`, `10 min`, `2 h 15 min`."""
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


def _without_omitted(text: str) -> str:
    """Return `text` without the places of missing values, and without a colon or `at offset` before them; inside round brackets
    without the parts, between commas or semicolons, of them."""
    return _OMITTED_WORD.sub("", _REMARK.sub(_remark, text)).strip()


def _remark(match: re.Match[str]) -> str:
    parts = [part for part in _PART.findall(match[1]) if OMITTED not in part]
    return f" ({''.join(parts).rstrip(',; ')})" if parts else ""


def _prose_value(hole: Hole, environment: Environment) -> str:
    values = (evaluate(expression, environment) for expression in (hole.expression, *hole.others))
    value = next((value for value in values if value is not UNKNOWN and value != ""), UNKNOWN)
    if value is UNKNOWN:
        return hole.instead or f"<{_name_of(hole, environment).replace('_', ' ')}>"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    text = _in_unit(hole.unit, value)
    is_span = hole.unit == "ms" or names(hole.expression) == {"duration"}
    return words_of(str(environment.get(LANGUAGE, ENGLISH.language))).sentence(text) if is_span else text


def _in_unit(unit: str, value: Result) -> str:
    if unit == HOST:
        return host_of(_plain(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if unit == "bytes":
        return f"{int(value):,}"
    if unit == "ms":
        return human_ms(value)
    return human_bytes(value) if unit == "human" else _plain(value)


def _checked(hole: Hole, environment: Environment) -> str:
    """Return the value of `hole` if it fits the characters of its type, else a placeholder."""
    value = evaluate(hole.expression, environment)
    if value is UNKNOWN:
        return _placeholder(hole, environment)
    text = ",".join(_plain(item) for item in value) if isinstance(value, list | tuple) else _plain(value)
    text = host_of(text) if hole.unit == HOST else text
    return text if _fits(text, hole.charset) else _placeholder(hole, environment)


def _fits(text: str, charset: str) -> bool:
    if charset == "json":  # written by one of our functions, from numbers and checked names
        return "'" not in text and text.isprintable()
    return len(text) <= MAX_VALUE_CHARS and _CHARSETS.get(charset, _NAME).fullmatch(text) is not None


def _placeholder(hole: Hole, environment: Environment) -> str:
    return placeholder(_name_of(hole, environment))


def _name_of(hole: Hole, environment: Environment) -> str:
    """Return the name of the value that `hole` lacks, as a word."""
    mentioned = sorted(names(hole.expression), key=lambda name: (name in environment, name))
    return re.sub(r"\W", "_", mentioned[0].partition(".")[0]) if mentioned else "value"


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
