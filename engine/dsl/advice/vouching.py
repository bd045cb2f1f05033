"""A rule that excuses or resolves matches only lines of the component itself: quoting its text must not end an incident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.dsl.codes import Code
from engine.dsl.document import Loc
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.identity_cache import cached_by_identity
from engine.model.expressions import Binary, Expression, NameExpression, Unary
from engine.model.rules import SEVERITIES, Item, Rule, Signature, Test

_HELP = "give it a `speaker` and patterns that begin where the message begins, or look for `message|re: '\\A...'`"
_INFORMS = SEVERITIES[0]


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each rule that excuses or resolves alerts of `draft`, and `draft` itself where it explains alerts away, if any
    text that quotes the words of that rule matches it."""
    rule = pack.plan.rules().get(draft.id)
    if rule is None:
        return
    quotable = _quotable(pack)
    for loc, id_ in _withdrawing_rules(draft, rule):
        if id_ in quotable and not _is_unnamed_stop(id_, rule, pack):
            message = f"`{id_}` matches any line that quotes its text, whichever process prints that line"
            report.add(Code.QUOTABLE, draft.document.find(loc), message, _HELP)
    if rule.severity == _INFORMS and not rule.escalate and rule.id in quotable:
        for index, entry in enumerate(rule.explains):
            if "source" not in entry.by:
                message = "any line that quotes this rule's text hides these symptoms, whichever process prints that line"
                report.add(Code.QUOTABLE, draft.document.find(["explains", index]), message, _HELP)


def _withdrawing_rules(draft: Draft, rule: Rule) -> Iterator[tuple[Loc, str]]:
    """Yield (place, id) of every reference of the rule to one that withdraws or resolves its alerts."""
    if "source" not in rule.entity.values() and draft.file.clear is not None:
        yield from ((("clear", "rules", index), id_) for index, id_ in enumerate(draft.file.clear.rules))
    correlation = draft.file.correlation
    if correlation is None:
        return
    named: Sequence[tuple[str, str, Sequence[str]]] = (
        ("sooner", "back", correlation.sooner.back if correlation.sooner else ()),
        ("unless", "rules", correlation.unless.rules if correlation.unless else ()),
        ("after", "rules", correlation.after.rules if correlation.after else ()),
    )
    for key, part, ids in named:
        yield from ((("correlation", key, part, index), id_) for index, id_ in enumerate(ids))


def _is_unnamed_stop(id_: str, silent: Rule, pack: Pack) -> bool:
    """Return whether `id_` is a planned stop without a name, which is a stop of the process whose log holds the line."""
    correlation = next((correlation for correlation in pack.plan.correlations if correlation.rule.id == silent.id), None)
    stop = correlation.absence.stop if correlation is not None and correlation.absence is not None else None
    if stop is None or id_ not in stop.rules:
        return False
    named = {*silent.entity.values(), *stop.naming.values()} - {"cluster"}
    return named.isdisjoint(pack.plan.rules()[id_].captures)


@cached_by_identity
def _quotable(pack: Pack) -> frozenset[str]:
    """Return the ids of the signatures that can hold without an item that is bound to the beginning of a message."""
    return frozenset(signature.rule.id for signature in pack.plan.signatures if _is_quotable_signature(signature))


def _is_quotable_signature(signature: Signature) -> bool:
    return _may_hold(signature.condition, {item.name: _is_quotable(item) for item in signature.items})


def _is_quotable(item: Item) -> bool:
    return any(not any(map(_is_at_beginning, tests)) for tests in item.any_of)


def _is_at_beginning(test: Test) -> bool:
    if test.field != "message":
        return False
    return test.op == "startswith" or (test.op in ("pattern", "re") and test.regex.startswith(("\\A", "^")))


def _may_hold(condition: Expression, quotable: Mapping[str, bool]) -> bool:
    """Return whether a condition can be true while no item holds that is bound to the beginning of a message."""
    match condition:
        case NameExpression(name):
            return quotable.get(name, True)
        case Unary("not", _):
            return True
        case Binary("and", left, right):
            return _may_hold(left, quotable) and _may_hold(right, quotable)
        case Binary("or", left, right):
            return _may_hold(left, quotable) or _may_hold(right, quotable)
    return True
