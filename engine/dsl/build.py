"""Second pass: drafts become signatures and correlations of the model, now that every other rule is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.dsl.correlations import correlation_of, timespan_s
from engine.dsl.document import Loc, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.schema import CaseEntry, ClearEntry, EscalateEntry, ExplainsEntry, StepEntry, ToldAsEntry
from engine.dsl.templates import CONTEXT, EMPTY, expression, template
from engine.dsl.world import World, entity_of
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
PAIR_CLEAR_S = 24 * 3600.0  # what was expected seldom comes much later; until then it is not over


def signature(draft: Draft, world: World) -> Signature:
    """Return the signature of a draft with a detection; whatever is wrong goes to the draft's report."""
    found = draft.detection
    rule = _rule(draft, world, DEFAULT_CLEAR_S)
    items = tuple(_begun(item, found.condition) for item in found.items) if rule.speaker else found.items
    loggers = _loggers(rule.speaker, world)
    return Signature(rule, items, found.condition, draft.file.collapse, tuple(draft.file.distinct), loggers=loggers)


def _begun(item: Item, condition: Expression) -> Item:
    """Return an item that decides with its patterns, where they are looked for in the whole text, at a message's beginning."""
    if item.name not in names(condition):
        return item
    groups = tuple(tuple(t.at_beginning() if is_spoken(t) else t for t in tests) for tests in item.any_of)
    return Item(item.name, groups)


def is_spoken(test: Test) -> bool:
    """Tell whether a rule with a `speaker` takes `test` only where a message begins with it."""
    return test.op == "pattern" and test.field == "text"


def _loggers(speaker: Sequence[str], world: World) -> tuple[str, ...]:
    """Return the packages that the components of `speaker` log by; none when one of them may use any."""
    components = [world.components[name] for name in speaker if name in world.components]
    loggers = [each.loggers for each in components]
    return tuple(package for packages in loggers for package in packages) if all(loggers) else ()


def correlation(draft: Draft, world: World) -> Correlation | None:
    """Return the correlation of a draft, None when it has none that can be read."""
    given = draft.file.correlation
    if given is None:
        return None
    seconds = timespan_s(draft, given)
    quiet = PAIR_CLEAR_S if given.type == "pair" else seconds or DEFAULT_CLEAR_S
    return correlation_of(draft, given, _rule(draft, world, quiet), seconds, world)


def _rule(draft: Draft, world: World, clear_s: float) -> Rule:
    file, visible = draft.file, world.visible(draft.id)
    return Rule(
        id=file.id,
        title=_text(draft, ["title"], visible),
        status=file.status,
        severity=file.severity,
        component=file.component,
        versions=file.versions,
        entity=dict(entity_of(draft)),
        runbook=_runbook(draft, visible),
        captures=dict(world.captures(draft.id)),
        labels=dict(file.labels),
        explains=tuple(_explains(entry) for entry in file.explains),
        continues=tuple(Continues(e.rule, e.by, e.within) for e in file.continues),
        clear=_clear(file.clear, clear_s),
        escalate=_escalations(draft, visible),
        told_as=_told_as(draft, visible),
        for_s=file.for_,
        reopen_window_s=file.reopen_window,
        path=draft.document.path,
        replaces=tuple(file.replaces),
        speaker=tuple(file.speaker),
    )


def _explains(given: ExplainsEntry) -> Explains:
    within = given.within
    return Explains(tuple(given.rules), given.by, within.before, within.after, given.scope_wide, given.at_least, within.until)


def _clear(given: ClearEntry | None, default_s: float) -> Clear:
    if given is None:
        return Clear(in_s=default_s)
    return Clear(given.at_most, default_s if given.in_ is None else given.in_, tuple(given.rules), given.quiet)


def _runbook(draft: Draft, visible: Mapping[str, str]) -> Runbook:
    given = draft.file.runbook
    if given is None:
        return Runbook(EMPTY, EMPTY)
    return Runbook(
        cause=_text(draft, ["runbook", "cause"], visible),
        impact=_text(draft, ["runbook", "impact"], visible),
        fix=_fix(draft, given.fix, visible),
        verify=_texts(draft, ["runbook", "verify"], len(given.verify), visible, command=True),
        next_checks=_texts(draft, ["runbook", "next_checks"], len(given.next_checks), visible),
        references=tuple(given.references),
        cases=_cases(draft, given.cases, visible),
    )


def _cases(draft: Draft, given: Sequence[CaseEntry], visible: Mapping[str, str]) -> tuple[Case, ...]:
    at: list[str | int] = ["runbook", "cases"]
    return tuple(
        Case(
            when,
            cause=_text(draft, [*at, index, "cause"], visible),
            title=_text(draft, [*at, index, "title"], visible) if given[index].title else None,
            impact=_text(draft, [*at, index, "impact"], visible) if given[index].impact else None,
        )
        for index, when in _conditions(draft, at, given, visible)
    )


def _fix(draft: Draft, steps: Sequence[StepEntry], visible: Mapping[str, str]) -> tuple[Step, ...]:
    if not draft.document.whole(["runbook", "fix"], steps):
        return ()
    return tuple(_step(draft, index, step, visible) for index, step in enumerate(steps))


def _step(draft: Draft, index: int, given: StepEntry, visible: Mapping[str, str]) -> Step:
    at: list[str | int] = ["runbook", "fix", index]
    return Step(
        do=_text(draft, [*at, "do"], visible),
        where=given.where or "",
        set=_settings(draft, [*at, "set"], given.set, visible),
        also=_settings(draft, [*at, "also"], given.also, visible),
        file=_settings(draft, [*at, "file"], given.file, visible),
        run=_texts(draft, [*at, "run"], len(given.run), visible, command=True),
        changes_state=given.changes_state,
        when=_when(draft, at, visible) if given.when else None,
    )


def _settings(draft: Draft, loc: Loc, given: Mapping[str, str], visible: Mapping[str, str]) -> Mapping[str, Template]:
    return {name: _text(draft, [*loc, name], visible, command=True) for name in given}


def _texts(draft: Draft, loc: Loc, length: int, visible: Mapping[str, str], command: bool = False) -> tuple[Template, ...]:
    return tuple(_text(draft, [*loc, index], visible, command) for index in range(length))


def _text(draft: Draft, loc: Loc, visible: Mapping[str, str], command: bool = False) -> Template:
    node = draft.document.find(loc)
    return template(node, draft.report, visible, command) if isinstance(node, TextNode) else EMPTY


def _escalations(draft: Draft, visible: Mapping[str, str]) -> tuple[Escalation, ...]:
    steps = draft.file.escalate
    found = _conditions(draft, ["escalate"], steps, {**visible, "lasting": "num"})
    return tuple(Escalation(steps[index].to, when) for index, when in found)


def _told_as(draft: Draft, visible: Mapping[str, str]) -> tuple[ToldAs, ...]:
    given = draft.file.told_as
    return tuple(
        ToldAs(given[index].rule, when, _text(draft, ["told_as", index, "title"], visible))
        for index, when in _conditions(draft, ["told_as"], given, visible)
    )


def _conditions(
    draft: Draft, loc: Loc, given: Sequence[EscalateEntry | ToldAsEntry | CaseEntry], visible: Mapping[str, str]
) -> Iterator[tuple[int, Expression]]:
    """Yield the position and the `when` of each entry at `loc` that can be read."""
    for index in range(len(given) if draft.document.whole(loc, given) else 0):
        condition = _when(draft, [*loc, index], visible)
        if condition is not None:
            yield index, condition


def _when(draft: Draft, loc: Loc, visible: Mapping[str, str]) -> Expression | None:
    """Return the `when` of what stands at `loc`; None, reported, when it cannot be read."""
    return expression(draft.document.find([*loc, "when"]), draft.report, {**CONTEXT, **visible})


def plan_order(drafts: Mapping[str, Draft]) -> Sequence[Draft]:
    """Return the drafts by id: plans do not depend on the order of files."""
    return [drafts[id_] for id_ in sorted(drafts)]
