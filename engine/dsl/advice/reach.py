"""A correlation can hold, and every rule in it can count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.symbols import SymbolTable, entity_of, symbol_table
from engine.identity_cache import cached_by_identity
from engine.model.expressions import Binary, Call, Expression, Literal, Unary, evaluate
from engine.model.rules import Absence, Correlation, Plan

_CONDITION: Loc = ["correlation", "condition"]


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report the reasons why the correlation of `draft` can never hold, or a rule in it can never count."""
    correlation = next((correlation for correlation in pack.plan.correlations if correlation.rule.id == draft.id), None)
    if correlation is None:
        return
    if correlation.absence is not None:
        _check_absence(draft, correlation.absence, pack.plan, report)
    elif correlation.type == "pair":
        _check_pair(draft, correlation, report)
    elif correlation.type == "temporal_ordered":
        _check_order(draft, correlation, pack.plan, report)
    elif correlation.condition is not None:
        _check_condition(draft, correlation, correlation.condition, pack.plan, report)
    _check_keys(draft, _symbols(pack), report)


@cached_by_identity
def _symbols(pack: Pack) -> SymbolTable:
    return symbol_table(pack.drafts, {component.name: component for component in pack.plan.components}, pack.plan.formats)


def _check_absence(draft: Draft, absence: Absence, plan: Plan, report: Report) -> None:
    component = next((component for component in plan.components if component.name == absence.of), None)
    if absence.timespan_s == 0 and absence.sooner is None and component is not None and not component.heartbeats:
        message = f"`{absence.of}` has no heartbeats, so its silence is never judged"
        at = draft.document.find(["correlation", "of"])
        report.add(Code.UNREACHABLE, at, message, "give the component heartbeats, or write a time span, or add `sooner`")


def _check_pair(draft: Draft, pair: Correlation, report: Report) -> None:
    for index, id_ in enumerate(pair.rules):
        if id_ in pair.expect:
            at = draft.document.find(["correlation", "open", index])
            message = f"`{id_}` is in `expect` too, so it completes the pair itself and the pair is never open"
            report.add(Code.UNREACHABLE, at, message, "put the rule that follows it into `expect`")


def _check_order(draft: Draft, correlation: Correlation, plan: Plan, report: Report) -> None:
    for id_, times in Counter(correlation.rules).items():
        most = _most([id_], correlation, plan)
        if times > most:
            at = draft.document.find(["correlation", "rules"])
            message = f"`{id_}` is needed {times} times, and occurs at most {most} times in the time span"
            report.add(Code.UNREACHABLE, at, message, "use a longer `timespan`, or a shorter `collapse` of that rule")


def _check_condition(draft: Draft, correlation: Correlation, condition: Expression, plan: Plan, report: Report) -> None:
    most, why = _reach(correlation, plan)
    if any(evaluate(condition, {"count": count}) is True for count in _candidates(condition, most)):
        return
    why = why if math.isfinite(most) else "it contradicts itself"
    cure = "use a longer `timespan`, a shorter `collapse` of the counted rules, or a smaller count"
    report.add(Code.UNREACHABLE, draft.document.find(_CONDITION), f"no count fulfils this condition: {why}", cure)


def _reach(correlation: Correlation, plan: Plan) -> tuple[float, str]:
    """Return the largest `count` that a window of the correlation can have, and the reason for the limit in words."""
    if correlation.field and correlation.field in correlation.rule.entity.values():
        return 1, f"`{correlation.field}` is in `group-by`, so it has one value only"
    if correlation.type == "value_count":
        return math.inf, ""  # matches with different values are never collapsed
    most = _most(correlation.rules, correlation, plan)
    return most, f"there are at most {most} occurrences in the time span"


def _most(rules: Iterable[str], correlation: Correlation, plan: Plan) -> float:
    """Return the largest number of occurrences of `rules` that a window can hold; `collapse` limits those of one entity."""
    collapse = {signature.rule.id: signature.collapse_s for signature in plan.signatures}
    collapses = [collapse.get(id_, 0.0) for id_ in rules]
    if not all(collapses):
        return math.inf
    return sum(math.floor(correlation.timespan_s / collapse_s) + 1 for collapse_s in collapses)


def _candidates(condition: Expression, most: float) -> Iterator[float]:
    """Yield the counts up to `most` that decide whether `condition` can hold: at, below, above and between its numbers."""
    counts = {1, *(int(number) + step for number in _numbers(condition) for step in (-1, 0, 1))}
    yield from (count for count in sorted(counts) if 1 <= count <= most)


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


def _check_keys(draft: Draft, symbols: SymbolTable, report: Report) -> None:
    """Report rules without a value for a key of `group-by`: their matches never share an entity with those of the others."""
    correlation = draft.file.correlation
    for key, ids in (
        (("rules", correlation.rules), ("open", correlation.open), ("expect", correlation.expect)) if correlation else ()
    ):
        for index, id_ in enumerate(ids):
            missing = " and no ".join(f"`{name}`" for name in _missing(draft, id_, symbols))
            if missing:
                at = draft.document.find(["correlation", key, index])
                message = f"`{id_}` has no {missing}, so it never counts together with the others"
                report.add(Code.UNREACHABLE, at, message, "capture it in that rule, or group by what all of them have")


def _missing(draft: Draft, id_: str, symbols: SymbolTable) -> Sequence[str]:
    other = symbols.outlines.get(id_)
    if other is None:
        return ()
    names = {*symbols.captures(id_), *symbols.labels, *other.labels, *other.entity}
    return [name for name in entity_of(draft).values() if name not in names]
