"""The settings and commands of a fix as the speaker has them: the dialect of the lines that prove an incident decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import re2
from msgspec.structs import replace

from engine.model.dialects import VALUE, Dialect
from engine.model.incidents import RenderedStep
from engine.model.records import Labels
from engine.model.rules import Plan
from engine.model.words import frame

_GROUP = re.compile(r"\\([1-9])")
SPELLED = frame("{do} (spelled for {dialect})")  # what a step becomes


def spelled(steps: Iterable[RenderedStep], texts: Sequence[str], labels: Labels, plan: Plan) -> tuple[RenderedStep, ...]:
    """Return the steps with their settings and commands spelled as the speaker of `texts` writes them; unchanged where no
    dialect of the plan, or more than one, fits.

    Args:
        texts: the events that prove the incident; events of no dialect do not count.
        labels: the labels of the incident.
    """
    dialect = _commander(texts, labels, plan)
    remarks: set[str] = set()
    with_settings = [_with_settings(step, texts, labels, plan) for step in steps]
    speaker = _speaker([dialect for dialect in plan.dialects if dialect.absent], texts, labels)
    return tuple(_with_command(_with_names(step, speaker, remarks), dialect, remarks) for step in with_settings)


def applicable(sentences: Sequence[str], texts: Sequence[str], labels: Labels, plan: Plan) -> tuple[str, ...]:
    """Return the checks or references that name no setting which the speaker of `texts` lacks. Arguments as in `spelled`."""
    dialect = _speaker([dialect for dialect in plan.dialects if dialect.absent], texts, labels)
    return tuple(sentence for sentence in sentences if dialect is None or not _named(sentence, dialect))


def spelled_command(command: str, texts: Sequence[str], labels: Labels, plan: Plan) -> str:
    """Return a command as the speaker of `texts` writes it; empty if it does not work there. Arguments as in `spelled`."""
    dialect = _commander(texts, labels, plan) if command else None
    return command if dialect is None else _command(command, dialect)[0]


def _spelled_for(dialect: Dialect) -> str:
    return SPELLED.removeprefix("{do} (").removesuffix(")").format(dialect=dialect.label)


def _with_command(step: RenderedStep, dialect: Dialect | None, remarks: set[str]) -> RenderedStep:
    """Return the step with its command as `dialect` has it, and with the remark about that unless it is in `remarks`, to which
    it is added.
    """
    if dialect is None or not step.run:
        return step
    run, remark = _command(step.run, dialect)
    is_new = bool(remark) and remark not in remarks
    remarks.add(remark)
    return replace(step, run=run, do=f"{step.do} ({remark})" if is_new else step.do)


def _with_names(step: RenderedStep, dialect: Dialect | None, remarks: set[str]) -> RenderedStep:
    """Return the step with a remark about each setting that its words name and `dialect` lacks, unless it is in `remarks`, to
    which it is added. Words that speak of the dialect itself need none.
    """
    if dialect is None or step.where not in dialect.places or dialect.label.lower() in step.do.lower():
        return step
    lacking = [_lack(dialect, name) for name in _named(step.do, dialect)]
    added = [remark for remark in lacking if remark not in remarks]
    remarks.update(added)
    return replace(step, do=f"{step.do} ({'; '.join(added)})" if added else step.do)


def _lack(dialect: Dialect, name: str) -> str:
    """Return the remark that `dialect` lacks a setting; what its label says after a comma is how it spells others."""
    return f"{dialect.label.partition(',')[0]} has no {name}: {dialect.absent[name]}"


def _named(sentence: str, dialect: Dialect) -> Sequence[str]:
    """Return the settings that a sentence names and `dialect` lacks; a name without a dot may be any word."""
    return [
        name
        for name in dialect.absent
        if "." in name and _matches(rf"(?:^|[^\w.-]|configs_){re2.escape(name)}(?:[^\w.]|\.?$|\.\W)", sentence)
    ]


def _commander(texts: Sequence[str], labels: Labels, plan: Plan) -> Dialect | None:
    return _speaker([dialect for dialect in plan.dialects if dialect.commands or dialect.absent_commands], texts, labels)


def _command(command: str, dialect: Dialect) -> tuple[str, str]:
    """Return a command as `dialect` has it, empty if it does not work there, and a remark about that, if there is one."""
    for expression, instead in dialect.absent_commands.items():
        if _matches(expression, command):
            return "", instead
    for expression, text in dialect.commands.items():
        match = _compiled(expression).search(command)
        if match:
            return command[: match.start()] + _with_groups(text, match) + command[match.end() :], _spelled_for(dialect)
    return command, ""


def _with_groups(text: str, match: re2._Match[str]) -> str:
    r"""Return `text` with each `\1` to `\9` replaced by that group of the match; a number that it has no group for stays."""
    groups = match.groups()
    return _GROUP.sub(lambda number: (groups[int(number[1]) - 1] or "") if int(number[1]) <= len(groups) else number[0], text)


def _with_settings(step: RenderedStep, texts: Sequence[str], labels: Labels, plan: Plan) -> RenderedStep:
    levels = plan.setting_levels.get(step.where, {})
    settings = [name for name in step.set if name in levels]
    dialect = (
        _speaker([dialect for dialect in plan.dialects if step.where in dialect.places], texts, labels) if settings else None
    )
    if dialect is None:
        return step
    absent = [name for name in settings if name in dialect.absent]
    spellings = {name: dialect.spelling(name, levels[name]) for name in settings if name not in absent}
    remarks = [_spelled_for(dialect)] if any(name != spelling for name, spelling in spellings.items()) else []
    remarks += [_lack(dialect, name) for name in absent]
    kept = ((spellings.get(name, name), value) for name, value in step.set.items() if name not in absent)
    return replace(
        step,
        do=f"{step.do} ({'; '.join(remarks)})" if remarks else step.do,
        where=dialect.where or step.where,
        set=dict(_assigned(spelling, value) for spelling, value in kept),
    )


def _speaker(dialects: Sequence[Dialect], texts: Sequence[str], labels: Labels) -> Dialect | None:
    """Return the one dialect that the events are of; None without one, or with several."""
    speakers = {dialect.name: dialect for text in texts for dialect in _dialects_of(text, labels, dialects)}
    return next(iter(speakers.values())) if len(speakers) == 1 else None


def _dialects_of(text: str, labels: Labels, dialects: Sequence[Dialect]) -> Sequence[Dialect]:
    """Return the dialects of the lowest rank among those that an event is of."""
    fitting = [dialect for dialect in dialects if _speaks(dialect, text, labels)]
    return [dialect for dialect in fitting if dialect.rank == fitting[0].rank]


def _speaks(dialect: Dialect, text: str, labels: Labels) -> bool:
    return any(_matches(line, text) for line in dialect.lines) or any(
        name in labels and _matches(expression, labels[name]) for name, expression in dialect.labels.items()
    )


def _matches(expression: str, text: str) -> bool:
    return _compiled(expression).search(text) is not None


@lru_cache(maxsize=1000)
def _compiled(expression: str) -> re2._Regexp[str]:
    return re2.compile(expression)


def _assigned(spelling: str, value: str) -> tuple[str, str]:
    """Return the name and the value of a setting in a spelling."""
    name, assigns, written = spelling.partition("=")
    return name, written.replace(VALUE, value) if assigns else value
