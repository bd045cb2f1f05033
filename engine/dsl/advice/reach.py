"""A correlation that can never hold warns nobody; nor does a rule in it that could never count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.world import World, entity_of, world
from engine.identity_cache import remembered
from engine.model.expressions import Binary, Call, Expression, Literal, Unary, evaluate
from engine.model.rules import Absence, Correlation, Plan

_CONDITION: Loc = ["correlation", "condition"]


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report whatever keeps the correlation of `draft`, or a rule that it names, from ever counting."""
    found = next((each for each in pack.plan.correlations if each.rule.id == draft.id), None)
    if found is None:
        return
    if found.absence is not None:
        _check_absence(draft, found.absence, pack.plan, report)
    elif found.type == "pair":
        _check_pair(draft, found, report)
    elif found.type == "temporal_ordered":
        _check_order(draft, found, pack.plan, report)
    elif found.condition is not None:
        _check_condition(draft, found, found.condition, pack.plan, report)
    _check_keys(draft, _world(pack), report)


@remembered
def _world(pack: Pack) -> World:
    return world(pack.drafts, {each.name: each for each in pack.plan.components}, pack.plan.formats)


def _check_absence(draft: Draft, given: Absence, plan: Plan, report: Report) -> None:
    component = next((each for each in plan.components if each.name == given.of), None)
    if given.timespan_s == 0 and given.sooner is None and component is not None and not component.heartbeats:
        message = f"`{given.of}` has no heartbeats, so its silence is never judged"
        at = draft.document.find(["correlation", "of"])
        report.add(Code.UNREACHABLE, at, message, "give the component heartbeats, or write a time span, or add `sooner`")


def _check_pair(draft: Draft, given: Correlation, report: Report) -> None:
    for index, id_ in enumerate(given.rules):
        if id_ in given.expect:
            at = draft.document.find(["correlation", "open", index])
            message = f"`{id_}` is also expected, so it answers itself and is never left open"
            report.add(Code.UNREACHABLE, at, message, "expect what follows it, not the rule itself")


def _check_order(draft: Draft, given: Correlation, plan: Plan, report: Report) -> None:
    for id_, wanted in Counter(given.rules).items():
        most = _most([id_], given, plan)
        if wanted > most:
            at = draft.document.find(["correlation", "rules"])
            message = f"`{id_}` is asked for {wanted} times, and occurs at most {most} times in the time span"
            report.add(Code.UNREACHABLE, at, message, "a longer `timespan`, or a shorter `collapse` of that rule")


def _check_condition(draft: Draft, given: Correlation, condition: Expression, plan: Plan, report: Report) -> None:
    most, why = _reach(given, plan)
    if any(evaluate(condition, {"count": count}) is True for count in _candidates(condition, most)):
        return
    why = why if math.isfinite(most) else "it contradicts itself"
    cure = "a longer `timespan`, a shorter `collapse` of the counted rules, or a smaller count"
    report.add(Code.UNREACHABLE, draft.document.find(_CONDITION), f"no count fulfils this condition: {why}", cure)


def _reach(given: Correlation, plan: Plan) -> tuple[float, str]:
    """Return the largest `count` that a window of `given` can have, and in words what it is that limits it."""
    if given.field and given.field in given.rule.entity.values():
        return 1, f"`{given.field}` is in `group-by`, so it has one value only"
    if given.type == "value_count":
        return math.inf, ""  # what has different values is never collapsed
    most = _most(given.rules, given, plan)
    return most, f"there are at most {most} occurrences in the time span"


def _most(rules: Iterable[str], given: Correlation, plan: Plan) -> float:
    """Return how many occurrences of `rules` the window can hold: `collapse` keeps those of one entity apart."""
    collapse = {each.rule.id: each.collapse_s for each in plan.signatures}
    counted = [collapse.get(id_, 0.0) for id_ in rules]
    if not all(counted):
        return math.inf
    return sum(math.floor(given.timespan_s / each) + 1 for each in counted)


def _candidates(condition: Expression, most: float) -> Iterator[float]:
    """Yield counts up to `most` that tell whether `condition` can hold: on, below, above and between the numbers it has."""
    around = {1, *(int(number) + step for number in _numbers(condition) for step in (-1, 0, 1))}
    yield from (count for count in sorted(around) if 1 <= count <= most)


def _numbers(expression: Expression) -> Iterator[float]:
    match expression:
        case Literal(int() | float() as value):
            yield value
        case Unary(_, operand):
            yield from _numbers(operand)
        case Binary(_, left, right):
            yield from _numbers(left)
            yield from _numbers(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from _numbers(argument)


def _check_keys(draft: Draft, known: World, report: Report) -> None:
    """Report rules that can never have a value for a key of `group-by`: what others have by it is another entity."""
    given = draft.file.correlation
    for key, ids in (("rules", given.rules), ("open", given.open), ("expect", given.expect)) if given else ():
        for index, id_ in enumerate(ids):
            missing = " and no ".join(f"`{name}`" for name in _missing(draft, id_, known))
            if missing:
                at = draft.document.find(["correlation", key, index])
                message = f"`{id_}` has no {missing}, so it never counts together with the others"
                report.add(Code.UNREACHABLE, at, message, "capture it in that rule, or group by what all of them have")


def _missing(draft: Draft, id_: str, known: World) -> Sequence[str]:
    other = known.outlines.get(id_)
    if other is None:
        return ()
    has = {*known.captures(id_), *known.labels, *other.labels, *other.entity}
    return [name for name in entity_of(draft).values() if name not in has]
