"""Compile a file of rules/dialects: the names of all settings of Kafka as one client or platform writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

import re2

from engine.dsl.codes import Code
from engine.dsl.document import Loc, RuleDocument, TextNode
from engine.dsl.patterns import compiled_by_re2, report_refused
from engine.dsl.report import Report, did_you_mean
from engine.dsl.schema import DialectFile
from engine.dsl.settings import LEVELS, PREFIXES, settings_by_level
from engine.dsl.structure import check
from engine.model.dialects import Dialect

ANY_CLIENT = "client"  # level of settings that several kinds of client have
_KINDS = ("consumer", "producer", "admin")
SPELLED_LEVELS = (ANY_CLIENT, *_KINDS, "streams", "broker", "topic", "worker", "connector")
# form of a name in a spelling -> the name in that form
FORMS: Mapping[str, Callable[[str], str]] = {
    "name": lambda name: name,
    # the variables of the images of Apache Kafka and Confluent
    "NAME": lambda name: name.replace("_", "__").replace("-", "___").replace(".", "_").upper(),
    "snake": lambda name: name.replace(".", "_").replace("-", "_"),
}
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
    _check_examples(file, lines, labels, document, report)
    spellings = {where: dict(_spellings(file, where)) for where in LEVELS}
    absent = {where: {name: file.absent[name] for name in _settings(where) if name in file.absent} for where in LEVELS}
    return Dialect(
        file.name,
        file.label,
        file.rank,
        lines,
        labels,
        {where: names for where, names in spellings.items() if names},
        {where: names for where, names in absent.items() if names and where in _levels_of(file)},
        file.where or "",
    )


def _levels_of(file: DialectFile) -> frozenset[str]:
    """Return the levels of steps that the dialect has a spelling for."""
    return frozenset(
        where for where, levels in LEVELS.items() if {*levels, *([ANY_CLIENT] * (where == ANY_CLIENT))} & {*file.spells}
    )


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


def _spellings(file: DialectFile, where: str) -> Iterator[tuple[str, str]]:
    """Yield the settings that are spelled in another way than Kafka's, and how."""
    if where not in _levels_of(file):
        return
    for name, level in _settings(where).items():
        if name in file.absent:
            continue
        spelling = file.names.get(name) or _written(file.spells.get(level, "{name}"), name)
        if spelling != name:
            yield name, spelling


def _written(template: str, name: str) -> str:
    return _HOLE.sub(lambda hole: FORMS[hole[1]](name) if hole[1] in FORMS else hole[0], template)


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
    names = {name for where in _levels_of(file) for name in _settings(where)}
    for key in ("names", "absent"):
        for name in getattr(file, key):
            if name not in names:
                help_line = did_you_mean(name, names, "Kafka's own name, as in its documentation")
                message = f"Kafka has no setting `{name}` at a level of `spells`"
                report.add(Code.UNSPELLABLE, document.key([key, name]), message, help_line)


def _is_expression(text: str, loc: Loc, document: RuleDocument, report: Report) -> bool:
    node, refusal = document.find(loc), compiled_by_re2(text)
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
