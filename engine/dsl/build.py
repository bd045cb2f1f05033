"""Second pass: drafts become signatures and correlations of the model, now that every other rule is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.grammar import ExpressionError, parse
from engine.dsl.quantities import MAX_DIGITS, OPERATORS, duration_s
from engine.dsl.report import did_you_mean
from engine.dsl.schema import ClearEntry, CorrelationEntry, StepEntry
from engine.dsl.templates import CONTEXT, EMPTY, report_unknown, template
from engine.dsl.world import World, entity_of
from engine.model.expressions import Binary, Expression, Literal, Name
from engine.model.rules import (
    Absence,
    Clear,
    Continues,
    Correlation,
    Escalation,
    Explains,
    Rule,
    Runbook,
    Signature,
    Sooner,
    Step,
    Template,
    Unless,
)

DEFAULT_CLEAR_S = 3600.0


def signature(draft: Draft, world: World) -> Signature:
    """Return the signature of a draft with a detection; whatever is wrong goes to the draft's report."""
    found = draft.detection
    rule = _rule(draft, world, DEFAULT_CLEAR_S)
    return Signature(rule, found.items, found.condition, draft.file.collapse, tuple(draft.file.distinct))


def correlation(draft: Draft, world: World) -> Correlation | None:
    """Return the correlation of a draft, None when it has none that can be read."""
    given = draft.file.correlation
    if given is None:
        return None
    timespan_s = _timespan_s(draft, given)
    _check_shape(draft, given)
    condition = _count_condition(draft, given) if given.type == "event_count" else None
    absence = Absence(given.of or "", timespan_s, _sooner(given), _unless(given)) if given.type == "absence" else None
    rule = _rule(draft, world, timespan_s or DEFAULT_CLEAR_S)
    return Correlation(rule, given.type, tuple(given.rules), timespan_s, condition, absence)


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
        explains=tuple(Explains(tuple(e.rules), e.by, e.within.before, e.within.after, e.scope_wide) for e in file.explains),
        continues=tuple(Continues(e.rule, e.by, e.within) for e in file.continues),
        clear=_clear(file.clear, clear_s),
        escalate=_escalations(draft, visible),
        for_s=file.for_,
        reopen_window_s=file.reopen_window,
        path=draft.document.path,
    )


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
    )


def _settings(draft: Draft, loc: Loc, given: Mapping[str, str], visible: Mapping[str, str]) -> Mapping[str, Template]:
    return {name: _text(draft, [*loc, name], visible, command=True) for name in given}


def _texts(draft: Draft, loc: Loc, length: int, visible: Mapping[str, str], command: bool = False) -> tuple[Template, ...]:
    return tuple(_text(draft, [*loc, index], visible, command) for index in range(length))


def _text(draft: Draft, loc: Loc, visible: Mapping[str, str], command: bool = False) -> Template:
    node = draft.document.find(loc)
    return template(node, draft.report, visible, command) if isinstance(node, TextNode) else EMPTY


def _escalations(draft: Draft, visible: Mapping[str, str]) -> tuple[Escalation, ...]:
    known = {**CONTEXT, **visible, "lasting": "num"}
    made: list[Escalation] = []
    if not draft.document.whole(["escalate"], draft.file.escalate):
        return ()
    for index, entry in enumerate(draft.file.escalate):
        condition = _expression(draft, ["escalate", index, "when"], known)
        if condition is not None:
            made.append(Escalation(entry.to, condition))
    return tuple(made)


def _expression(draft: Draft, loc: Loc, known: Mapping[str, str]) -> Expression | None:
    node = draft.document.find(loc)
    if not isinstance(node, TextNode):
        return None
    try:
        made = parse(node.value)
    except ExpressionError as error:
        draft.report.add(error.code, node, error.message, error.help, error.offset, error.length)
        return None
    report_unknown(made, node.value, 0, node, draft.report, known, Code.UNKNOWN_NAME)
    return made


def _timespan_s(draft: Draft, given: CorrelationEntry) -> float:
    """Return the time span in seconds; 0 for `heartbeat`."""
    node = draft.document.find(["correlation", "timespan"])
    if given.timespan == "heartbeat":
        if given.type != "absence":
            draft.report.add(Code.CORRELATION_SHAPE, node, "`heartbeat` is a time span of absence only", "write a duration")
        return 0.0
    try:
        return duration_s(given.timespan)
    except ValueError:
        draft.report.add(
            Code.BAD_DURATION, node, f"`{given.timespan}` is not a duration", "for example: 30s, 10m, 1h; or heartbeat"
        )
        return 0.0


def _check_shape(draft: Draft, given: CorrelationEntry) -> None:
    absence = given.type == "absence"
    needed = ("of",) if absence else ("rules", "condition")
    refused = ("rules", "condition") if absence else ("of", "sooner", "unless")
    kind, example = f"a correlation of type {given.type}", _EXAMPLES[given.type]
    for key in needed:
        if not getattr(given, key):
            here = draft.document.root.key("correlation") or draft.document.root
            draft.report.add(Code.CORRELATION_SHAPE, here, f"{kind} needs `{key}`", example)
    for key in refused:
        if getattr(given, key):
            at = draft.document.key(["correlation", key])
            draft.report.add(Code.CORRELATION_SHAPE, at, f"{kind} takes no `{key}`", example)


_EXAMPLES = {
    "event_count": "for example: {type: event_count, rules: [a], group-by: [cluster], timespan: 1h, condition: {gte: 4}}",
    "absence": "for example: {type: absence, of: broker, group-by: [cluster, broker], timespan: heartbeat}",
}


def _count_condition(draft: Draft, given: CorrelationEntry) -> Expression | None:
    """Return the condition over `count`: an expression, or a map of gt, gte, lt, lte, eq that must all hold."""
    if isinstance(given.condition, str):
        return _expression(draft, ["correlation", "condition"], {"count": "int"})
    if not isinstance(given.condition, dict):
        return None
    made: Expression | None = None
    for operator, number in given.condition.items():
        limit = _limit(draft, operator, number)
        if limit is not None:
            made = limit if made is None else Binary("and", made, limit)
    return made


def _limit(draft: Draft, operator: str, number: object) -> Expression | None:
    loc = ["correlation", "condition", operator]
    if operator not in OPERATORS:
        help_line = did_you_mean(operator, OPERATORS)
        draft.report.add(Code.UNKNOWN_KEY, draft.document.key(loc), f"unknown comparison `{operator}`", help_line)
        return None
    if not isinstance(number, str) or not number.isascii() or not number.isdigit() or len(number) > MAX_DIGITS:
        draft.report.add(Code.BAD_NUMBER, draft.document.find(loc), "must be a whole number of at most 19 digits")
        return None
    return Binary(OPERATORS[operator], Name("count"), Literal(int(number)))


def _sooner(given: CorrelationEntry) -> Sooner | None:
    entry = given.sooner
    return Sooner(tuple(entry.rules), entry.naming, entry.timespan, tuple(entry.back)) if entry else None


def _unless(given: CorrelationEntry) -> Unless | None:
    entry = given.unless
    return Unless(tuple(entry.rules), entry.within, entry.for_, entry.naming) if entry else None


def plan_order(drafts: Mapping[str, Draft]) -> Sequence[Draft]:
    """Return the drafts by id: plans do not depend on the order of files."""
    return [drafts[id_] for id_ in sorted(drafts)]
