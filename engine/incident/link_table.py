"""The links that the rules of a plan declare: `explains`, `continues` and `reopen_window` in one table.

engine/incident/links.py decides by it which alerts are linked, engine/incident/affected.py which alerts might be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.identity_cache import cached_by_identity
from engine.model.incidents import DAWN, EVER
from engine.model.rules import SEVERITIES, Plan, Rule

KeyPairs = tuple[tuple[str, str], ...]


class RuleLink(Struct, frozen=True):
    """A link that two rules may have: `first` explains `second`, or `second` continues `first`.

    Attributes:
        by: pairs of a key of `first` and the key of `second` that must have a value in common.
        before: how long before an alert of `first` begins one of `second` may begin.
        after: how long after an alert of `first` is over one of `second` may begin.
        is_stage: whether `second` continues `first`; else `first` explains `second`.
        at_least: the severity from which on an alert of `first` explains others.
        until: how long an explained alert may go on after that of `first` is over; None: without limit.
        lowers: whether an explained alert is no symptom, but less severe while it has occurred once.
    """

    first: str
    second: str
    by: KeyPairs
    before: timedelta
    after: timedelta
    is_stage: bool = False
    at_least: str = SEVERITIES[0]
    until: timedelta | None = None
    lowers: bool = False

    @property
    def in_earnest(self) -> bool:
        """Whether an alert of `first` must be severe to explain others."""
        return self.at_least != SEVERITIES[0]


class LinkTable(Struct, frozen=True):
    """The links of a plan.

    Attributes:
        outward: by the first rule, its links in the order of the plan.
        inward: by the second rule, its links in the order of the plan.
        reopen: by rule, how long after an alert another one of the same key is the same incident.
        reach: by rule, how long before an alert a linked one may be.
        absences: the rules whose alert, until it is over, goes on for ever.
    """

    outward: Mapping[str, Sequence[RuleLink]]
    inward: Mapping[str, Sequence[RuleLink]]
    reopen: Mapping[str, timedelta]
    reach: Mapping[str, timedelta]
    absences: frozenset[str]

    def explaining(self, rule_id: str) -> Iterator[RuleLink]:
        """Yield the links by which another rule explains this one."""
        yield from (link for link in self.inward.get(rule_id, ()) if not link.is_stage)

    def continued(self, rule_id: str) -> Iterator[RuleLink]:
        """Yield the links by which this rule continues another."""
        yield from (link for link in self.inward.get(rule_id, ()) if link.is_stage)


@cached_by_identity
def link_table(plan: Plan) -> LinkTable:
    """Return the links that the rules of `plan` declare."""
    outward: dict[str, list[RuleLink]] = defaultdict(list)
    inward: dict[str, list[RuleLink]] = defaultdict(list)
    rules = plan.rules().values()
    for link in (link for rule in rules for link in _links(rule)):
        outward[link.first].append(link)
        inward[link.second].append(link)
    reopen = {rule.id: timedelta(seconds=rule.reopen_window_s) for rule in rules}
    reach = {
        rule_id: max((window, *(link.before for link in outward[rule_id]), *(link.after for link in inward[rule_id])))
        for rule_id, window in reopen.items()
    }
    absences = frozenset(correlation.rule.id for correlation in plan.correlations if correlation.absence is not None)
    return LinkTable(dict(outward), dict(inward), reopen, reach, absences)


def _links(rule: Rule) -> Iterator[RuleLink]:
    for entry in rule.explains:
        by, before, after = tuple(entry.by.items()), timedelta(seconds=entry.before_s), timedelta(seconds=entry.after_s)
        until = None if entry.until_s is None else timedelta(seconds=entry.until_s)
        for symptom in entry.rules:
            yield RuleLink(rule.id, symptom, by, before, after, at_least=entry.at_least, until=until, lowers=entry.lowers)
    for stage in rule.continues:
        by = tuple((theirs, own) for own, theirs in stage.by.items())
        yield RuleLink(stage.rule, rule.id, by, timedelta(), timedelta(seconds=stage.within_s), is_stage=True)


def earlier(at: datetime, by: timedelta) -> datetime:
    """Return the time `by` before `at`, but never one before the calendar begins."""
    return at - by if at - DAWN > by else DAWN


def later(at: datetime, by: timedelta) -> datetime:
    """Return the time `by` after `at`, but never one after the calendar ends."""
    return at + by if EVER - at > by else EVER
