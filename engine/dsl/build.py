"""Second pass of the compiler: drafts become signatures and correlations of the model, with every other rule at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.dsl.correlations import correlation_of, timespan_s
from engine.dsl.document import Loc, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.schema import CaseEntry, ClearEntry, EscalateEntry, ExplainsEntry, StepEntry, ToldAsEntry
from engine.dsl.signs import signs_of_detection
from engine.dsl.symbols import SymbolTable, entity_of
from engine.dsl.templates import CONTEXT, EMPTY, expression, template
from engine.dsl.translations import TRANSLATED, translated_loc
from engine.model.expressions import Expression, names
from engine.model.rules import (
    Case,
    Clear,
    Continues,
    Correlation,
    Escalation,
    Explains,
    Item,
    Rule,
    Runbook,
    Signature,
    Step,
    Template,
    Test,
    ToldAs,
)

DEFAULT_CLEAR_S = 3600.0
PAIR_CLEAR_S = 24 * 3600.0  # an expected event rarely comes later than that; until it does, the alert is not over


class _WhenScope(Struct, frozen=True):
    """The names that a `when` of a rule may use: values with their types, the rule's items, and which values are its own
    captures."""

    types: Mapping[str, str]
    items: frozenset[str]
    captures: frozenset[str]


def signature(draft: Draft, symbols: SymbolTable) -> Signature:
    """Return the signature of a draft that has a detection; errors go to the draft's report."""
    detection = draft.detection
    rule = _rule(draft, symbols, DEFAULT_CLEAR_S)
    items = tuple(_anchored(item, detection.condition) for item in detection.items) if rule.speaker else detection.items
    loggers = _loggers(rule.speaker, symbols)
    return Signature(
        rule,
        items,
        detection.condition,
        draft.file.collapse,
        tuple(draft.file.distinct),
        loggers=loggers,
        signs=signs_of_detection(items, detection.condition),
    )


def _anchored(item: Item, condition: Expression) -> Item:
    """Return `item` with its patterns over `text` bound to the beginning of a message, if the condition uses it by name."""
    if item.name not in names(condition):
        return item
    groups = tuple(tuple(t.at_beginning() if is_bound_to_beginning(t) else t for t in tests) for tests in item.any_of)
    return Item(item.name, groups)


def is_bound_to_beginning(test: Test) -> bool:
    """Return whether, in a rule with a `speaker`, `test` holds only at the beginning of a message."""
    return test.op == "pattern" and test.field == "text"


def _loggers(speaker: Sequence[str], symbols: SymbolTable) -> tuple[str, ...]:
    """Return the logger packages of the components of `speaker`; empty when one of them declares none, so any logger fits."""
    components = [symbols.components[name] for name in speaker if name in symbols.components]
    if not all(component.loggers for component in components):
        return ()
    return tuple(package for component in components for package in component.loggers)


def correlation(draft: Draft, symbols: SymbolTable) -> Correlation | None:
    """Return the correlation of a draft; None when it has none, or an unreadable one."""
    entry = draft.file.correlation
    if entry is None:
        return None
    seconds = timespan_s(draft, entry)
    quiet = PAIR_CLEAR_S if entry.type == "pair" else seconds or DEFAULT_CLEAR_S
    return correlation_of(draft, entry, _rule(draft, symbols, quiet), seconds, symbols)


def _rule(draft: Draft, symbols: SymbolTable, clear_s: float) -> Rule:
    file, visible = draft.file, symbols.visible(draft.id)
    scope = _WhenScope({**CONTEXT, **visible}, symbols.items(draft.id), frozenset(symbols.captures(draft.id)))
    return Rule(
        id=file.id,
        title=_prose(draft, ["title"], visible),
        status=file.status,
        severity=file.severity,
        component=file.component,
        versions=file.versions,
        entity=dict(entity_of(draft)),
        runbook=_runbook(draft, visible, scope),
        captures=dict(symbols.captures(draft.id)),
        labels=dict(file.labels),
        explains=tuple(_explains(entry) for entry in file.explains),
        continues=tuple(Continues(e.rule, e.by, e.within) for e in file.continues),
        clear=_clear(file.clear, clear_s),
        escalate=_escalations(draft, scope),
        told_as=_told_as(draft, visible, scope),
        for_s=file.for_,
        reopen_window_s=file.reopen_window,
        path=draft.document.path,
        replaces=tuple(file.replaces),
        speaker=tuple(file.speaker),
        not_during=tuple(file.not_during),
        asked=file.asked,
    )


def _explains(entry: ExplainsEntry) -> Explains:
    within = entry.within
    return Explains(
        tuple(entry.rules), entry.by, within.before, within.after, entry.scope_wide, entry.at_least, within.until, entry.lowers
    )


def _clear(entry: ClearEntry | None, default_s: float) -> Clear:
    if entry is None:
        return Clear(in_s=default_s)
    quiet_s = default_s if entry.in_ is None else entry.in_
    return Clear(entry.at_most, quiet_s, tuple(entry.rules), entry.quiet, tuple(entry.unless), tuple(entry.back))


def _runbook(draft: Draft, visible: Mapping[str, str], scope: _WhenScope) -> Runbook:
    entry = draft.file.runbook
    if entry is None:
        return Runbook(EMPTY, EMPTY)
    return Runbook(
        cause=_prose(draft, ["runbook", "cause"], visible),
        impact=_prose(draft, ["runbook", "impact"], visible),
        fix=_fix(draft, entry.fix, visible, scope),
        verify=_texts(draft, ["runbook", "verify"], len(entry.verify), visible, command=True),
        next_checks=tuple(_prose(draft, ["runbook", "next_checks", n], visible) for n in range(len(entry.next_checks))),
        references=tuple(entry.references),
        cases=_cases(draft, entry.cases, visible, scope),
    )


def _cases(draft: Draft, entries: Sequence[CaseEntry], visible: Mapping[str, str], scope: _WhenScope) -> tuple[Case, ...]:
    at: list[str | int] = ["runbook", "cases"]
    return tuple(
        Case(
            when,
            cause=_prose(draft, [*at, index, "cause"], visible),
            title=_prose(draft, [*at, index, "title"], visible) if entries[index].title else None,
            impact=_prose(draft, [*at, index, "impact"], visible) if entries[index].impact else None,
        )
        for index, when in _conditions(draft, at, entries, scope)
    )


def _fix(draft: Draft, steps: Sequence[StepEntry], visible: Mapping[str, str], scope: _WhenScope) -> tuple[Step, ...]:
    if not draft.document.whole(["runbook", "fix"], steps):
        return ()
    return tuple(_step(draft, index, step, visible, scope) for index, step in enumerate(steps))


def _step(draft: Draft, index: int, entry: StepEntry, visible: Mapping[str, str], scope: _WhenScope) -> Step:
    at: list[str | int] = ["runbook", "fix", index]
    return Step(
        do=_prose(draft, [*at, "do"], visible),
        where=entry.where or "",
        set=_settings(draft, [*at, "set"], entry.set, visible),
        also=_settings(draft, [*at, "also"], entry.also, visible),
        file=_settings(draft, [*at, "file"], entry.file, visible),
        run=_texts(draft, [*at, "run"], len(entry.run), visible, command=True),
        changes_state=entry.changes_state,
        when=_when(draft, at, scope) if entry.when else None,
    )


def _settings(draft: Draft, loc: Loc, settings: Mapping[str, str], visible: Mapping[str, str]) -> Mapping[str, Template]:
    return {name: _text(draft, [*loc, name], visible, command=True) for name in settings}


def _texts(draft: Draft, loc: Loc, length: int, visible: Mapping[str, str], command: bool = False) -> tuple[Template, ...]:
    return tuple(_text(draft, [*loc, index], visible, command) for index in range(length))


def _text(draft: Draft, loc: Loc, visible: Mapping[str, str], command: bool = False) -> Template:
    node = draft.document.find(loc)
    return template(node, draft.report, visible, command) if isinstance(node, TextNode) else EMPTY


def _prose(draft: Draft, loc: Loc, visible: Mapping[str, str]) -> Template:
    """Return the template at `loc` with its translations."""
    translations = {language: _text(draft, translated_loc(loc, language), visible) for language in TRANSLATED}
    parts = {language: translation.parts for language, translation in translations.items() if translation is not EMPTY}
    return Template(_text(draft, loc, visible).parts, parts)


def _escalations(draft: Draft, scope: _WhenScope) -> tuple[Escalation, ...]:
    steps = draft.file.escalate
    lasting = replace(scope, types={**scope.types, "lasting": "num"})
    conditions = _conditions(draft, ["escalate"], steps, lasting)
    return tuple(Escalation(steps[index].to, when) for index, when in conditions)


def _told_as(draft: Draft, visible: Mapping[str, str], scope: _WhenScope) -> tuple[ToldAs, ...]:
    entries = draft.file.told_as
    return tuple(
        ToldAs(entries[index].rule, when, _prose(draft, ["told_as", index, "title"], visible))
        for index, when in _conditions(draft, ["told_as"], entries, scope)
    )


def _conditions(
    draft: Draft, loc: Loc, entries: Sequence[EscalateEntry | ToldAsEntry | CaseEntry], scope: _WhenScope
) -> Iterator[tuple[int, Expression]]:
    """Yield the position and the `when` of each entry at `loc` that can be read."""
    for index in range(len(entries) if draft.document.whole(loc, entries) else 0):
        condition = _when(draft, [*loc, index], scope)
        if condition is not None:
            yield index, condition


def _when(draft: Draft, loc: Loc, scope: _WhenScope) -> Expression | None:
    """Return the `when` of the entry at `loc`; None, reported, when it cannot be read."""
    return expression(draft.document.find([*loc, "when"]), draft.report, scope.types, scope.items, scope.captures)


def plan_order(drafts: Mapping[str, Draft]) -> Sequence[Draft]:
    """Return the drafts in order of id, so that a plan does not depend on the order of files."""
    return [drafts[id_] for id_ in sorted(drafts)]
