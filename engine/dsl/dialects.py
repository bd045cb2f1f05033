"""Compile a file of rules/dialects: how one client or platform writes the settings of Kafka."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath

import re2

from engine.dsl.codes import Code
from engine.dsl.document import Loc, Node, RuleDocument, TextNode
from engine.dsl.patterns import compiled_by_re2, report_refused
from engine.dsl.report import Report, did_you_mean
from engine.dsl.schema import DialectFile
from engine.dsl.settings import LEVELS, PLUGIN_LEVEL, PREFIXES, is_of_plugin, settings_by_level
from engine.dsl.structure import check
from engine.model.dialects import ANY_CLIENT, FORMS, Dialect
from engine.model.rules import Rule

_KINDS = ("consumer", "producer", "admin")
SPELLED_LEVELS = (ANY_CLIENT, *_KINDS, "streams", "broker", "topic", "worker", "connector")
_HOLE = re.compile(r"\{([^{}]*)\}")


def draft_dialect(document: RuleDocument, report: Report) -> Dialect | None:
    """Return the dialect of a file of rules/dialects; None when its keys cannot be read."""
    stem = PurePath(document.path).stem
    file = check(document, report, DialectFile, {"name": stem, "label": stem, "sources": ["?"], "examples": ["?"]})
    if file is None:
        return None
    if file.name != stem:
        help_line = f"rename the file to {file.name}.yml, or the name to {stem}"
        message = f"the name is `{file.name}` but the file is called `{stem}`"
        report.add(Code.ID_NOT_FILE_NAME, document.find(["name"]), message, help_line)
    _check_spellings(file, document, report)
    lines = tuple(line for n, line in enumerate(file.lines) if _is_expression(line, ["lines", n], document, report))
    labels = {name: text for name, text in file.labels.items() if _is_expression(text, ["labels", name], document, report)}
    commands, absent_commands = (_by_expression(key, file, document, report) for key in ("commands", "absent_commands"))
    _check_examples(file, lines, labels, document, report)
    return Dialect(
        file.name,
        file.label,
        file.rank,
        lines,
        labels,
        _places(file),
        file.spells,
        file.names,
        file.absent,
        file.where or "",
        commands,
        absent_commands,
    )


def _by_expression(key: str, file: DialectFile, document: RuleDocument, report: Report) -> Mapping[str, str]:
    """Return the entries of `commands` or `absent_commands` whose key is an RE2 expression; report the others."""
    entries: Mapping[str, str] = getattr(file, key)
    return {text: instead for text, instead in entries.items() if _is_expression_of(text, document.key([key, text]), report)}


def setting_levels(rules: Iterable[Rule]) -> Mapping[str, Mapping[str, str]]:
    """Return level of a step -> setting of Kafka that a fix of `rules` changes there -> the level of its spelling."""
    names: dict[str, set[str]] = {}
    for step in (step for rule in rules for step in rule.runbook.fix if step.where in LEVELS):
        names.setdefault(step.where, set()).update(step.set)
    return {where: _among(_settings(where), names[where], where) for where in sorted(names)}


def _among(levels: Mapping[str, str], names: Collection[str], where: str) -> Mapping[str, str]:
    of_plugins = {name: where for name in names if where == PLUGIN_LEVEL and is_of_plugin(name)}
    return {name: {**of_plugins, **levels}[name] for name in sorted(names) if name in levels or name in of_plugins}


def _places(file: DialectFile) -> tuple[str, ...]:
    """Return the levels of steps that the dialect has a spelling for."""
    spelled = {*file.spells, *(ANY_CLIENT for level in file.spells if level in LEVELS[ANY_CLIENT])}
    return tuple(where for where, levels in LEVELS.items() if where in spelled or spelled & {*levels})


@cache
def _settings(where: str) -> Mapping[str, str]:
    """Return the settings of Kafka at a level of steps, those behind prefixes included: name -> the level of its spelling."""
    if where == ANY_CLIENT:
        kinds = {name: [kind for kind in _KINDS if name in settings_by_level()[kind]] for name in _names(*_KINDS)}
        own = dict.fromkeys(_names("streams"), "streams")
        return {**own, **{name: of[0] if len(of) == 1 else ANY_CLIENT for name, of in kinds.items()}}
    [level] = LEVELS[where]
    prefixed = {
        prefix + name: level
        for prefix, of in PREFIXES.get(level, {}).items()
        for name in (settings_by_level()[of] if of else ())
    }
    return {**prefixed, **dict.fromkeys(_names(level), level)}


def _names(*levels: str) -> Iterator[str]:
    return (name for level in levels for name in settings_by_level()[level])


def _check_spellings(file: DialectFile, document: RuleDocument, report: Report) -> None:
    for level, template in file.spells.items():
        if level not in SPELLED_LEVELS:
            help_line = did_you_mean(level, SPELLED_LEVELS)
            report.add(Code.NOT_ONE_OF, document.key(["spells", level]), f"`{level}` is not a level of settings", help_line)
        holes = _HOLE.findall(template)
        if not holes or any(hole not in FORMS for hole in holes):
            message = f"`{template}` does not show where the name of a setting goes"
            help_line = (
                f"one of {', '.join(f'{{{form}}}' for form in FORMS)}, for example: spring.kafka.consumer.properties.{{name}}"
            )
            report.add(Code.SPELLING, document.find(["spells", level]), message, help_line)
    names = {name for where in _places(file) for name in _settings(where)}
    for key in ("names", "absent"):
        for name in getattr(file, key):
            if name not in names and not (PLUGIN_LEVEL in _places(file) and is_of_plugin(name)):
                help_line = did_you_mean(name, names, "Kafka's own name, as in its documentation")
                message = f"Kafka has no setting `{name}` at a level of `spells`"
                report.add(Code.UNSPELLABLE, document.key([key, name]), message, help_line)


def _is_expression(text: str, loc: Loc, document: RuleDocument, report: Report) -> bool:
    return _is_expression_of(text, document.find(loc), report)


def _is_expression_of(text: str, node: Node, report: Report) -> bool:
    refusal = compiled_by_re2(text)
    if refusal and isinstance(node, TextNode):
        report_refused(node, refusal, report)
    return not refusal


def _check_examples(
    file: DialectFile, lines: tuple[str, ...], labels: Mapping[str, str], document: RuleDocument, report: Report
) -> None:
    expressions = [re2.compile(text) for text in (*lines, *labels.values())]
    for index, example in enumerate(file.examples):
        if not any(expression.search(example) for expression in expressions):
            at, help_line = document.find(["examples", index]), "an example is a line of a log, or the value of a label"
            report.add(Code.EXAMPLE_FAILS, at, "no expression of `lines` or `labels` matches this example", help_line)
