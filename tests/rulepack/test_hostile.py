"""No shipped runbook puts what a log says into a command unless it is harmless there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import pytest

from engine.incident.render import command, setting
from engine.model.expressions import Environment, Result, names
from engine.model.rules import Hole, Rule, Template
from tests.hostile import HOSTILE
from tests.rulepack.playing import plan

RULES = sorted(plan().rules().values(), key=lambda rule: rule.id)


def commands(rule: Rule) -> Iterator[Sequence[Template]]:
    yield from (argv for argv in (rule.runbook.verify, *(step.run for step in rule.runbook.fix)) if argv)


def settings(rule: Rule) -> Iterator[Template]:
    for step in rule.runbook.fix:
        for values in (step.set, step.also, step.file):
            yield from values.values()


def named(templates: Sequence[Template]) -> set[str]:
    holes = (part for template in templates for part in template.parts if isinstance(part, Hole))
    return {name for hole in holes for name in names(hole.expression)}


def says(templates: Sequence[Template], value: str) -> Environment:
    """Return an environment in which the log has said `value` for everything that `templates` name."""
    found: Mapping[str, Result] = {name: [value] if name.endswith(".all") else value for name in named(templates)}
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_a_log_says_changes_no_command(rule: Rule) -> None:
    for argv in commands(rule):
        harmless = command(argv, {})
        for hostile in HOSTILE:
            line = command(argv, says(argv, hostile))
            assert len(shlex.split(line)) == len(shlex.split(harmless)) == len(argv)
            assert line == harmless, "only placeholders stand where the log would"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_a_log_says_changes_no_setting_and_no_file(rule: Rule) -> None:
    for template in settings(rule):
        for hostile in HOSTILE:
            assert setting(template, says([template], hostile)) == setting(template, {})


def test_there_are_commands_with_something_to_fill_in() -> None:
    filled = [argv for rule in RULES for argv in commands(rule) if named(argv)]
    assert len(filled) > 50
