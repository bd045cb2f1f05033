"""How people fared with each rule: how often they were told, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Connection, case, func, or_, select

from engine.codec import loads
from engine.model.acts import NO_HANDLING, Act, ActKind, Handling, RuleStats
from engine.model.notifications import DeliveryState
from engine.store.acts import HANDLED, is_in_force, shown_state
from engine.store.schema import acts, attempts, handlings, incidents, text

_NO_INCIDENTS = ("pending", "merged", "retracted")
_REASONS = 3


def rule_stats(connection: Connection, since: datetime) -> Sequence[RuleStats]:
    """Return the stats of every rule with incidents that began at `since` or later, or whose lines have no times.

    The rules with the most incidents that were not useful come first, then those that people were told of most often.
    """
    state = shown_state().label("shown")
    columns = (incidents.c.id, incidents.c.rule, incidents.c.first_seen, incidents.c.until)  # all in one index
    by_person = case((is_in_force(), 1), else_=0).label("by_person")
    handled = select(*columns, state, by_person, handlings.c.body.label("handling")).select_from(HANDLED)
    began_since = or_(incidents.c.first_seen >= text(since), incidents.c.first_seen.is_(None))
    chosen = handled.where(began_since, state.not_in(_NO_INCIDENTS)).subquery("chosen").c
    delivered = select(attempts.c.incident).where(attempts.c.outcome == DeliveryState.DELIVERED.value)
    acknowledged = select(acts.c.incident).where(acts.c.kind == ActKind.ACKNOWLEDGE.value)
    counted = [func.sum(case((chosen.id.in_(ids), 1), else_=0)) for ids in (delivered, acknowledged)]
    counts = connection.execute(select(chosen.rule, func.count(), *counted).group_by(chosen.rule)).all()
    of_rule: defaultdict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(select(*chosen).where(or_(chosen.shown == "resolved", chosen.handling.is_not(None)))):
        of_rule[row.rule].append(row)
    reasons = _reasons(connection)
    stats = [
        _stats(rule, number, told, acknowledged_number, of_rule[rule], reasons)
        for rule, number, told, acknowledged_number in map(tuple, counts)
    ]
    return sorted(stats, key=lambda each: (-each.not_useful, -each.told, -each.incidents, each.rule))


def _stats(
    rule: str,
    number: int,
    told: int,
    acknowledged: int,
    rows: Sequence[Any],
    reasons: Mapping[str, Sequence[tuple[int, str]]],
) -> RuleStats:
    """Return the stats of a rule. `rows`: its incidents that are resolved or that people acted on."""
    every = [(row, NO_HANDLING if row.handling is None else loads(row.handling, Handling)) for row in rows]
    lasted = [seconds for row, handling in every if (seconds := _lasted_s(row, handling)) is not None]
    own_reasons = sorted(reason for row, handling in every if handling.useful is False for reason in reasons.get(row.id, ()))
    return RuleStats(
        rule=rule,
        incidents=number,
        told=told,
        acknowledged=acknowledged,
        useful=sum(handling.useful is True for _, handling in every),
        not_useful=sum(handling.useful is False for _, handling in every),
        resolve_s=median(lasted) if lasted else None,
        reasons=tuple(text for _, text in own_reasons[-_REASONS:]),
    )


def _lasted_s(row: Any, handling: Handling) -> float | None:
    """Return the seconds from the first event of a resolved incident to its end: by the logs, or when a person resolved it,
    unless newer evidence ended that; None for others, and when the end is not known."""
    if row.shown != "resolved" or row.first_seen is None:
        return None
    end = handling.at if row.by_person else row.until and datetime.fromisoformat(row.until)
    return max(0.0, (end - datetime.fromisoformat(row.first_seen)).total_seconds()) if end else None


def _reasons(connection: Connection) -> dict[str, list[tuple[int, str]]]:
    """Return why incidents were called not useful, by incident, each with the number of its act."""
    query = select(acts.c.number, acts.c.body).where(acts.c.kind == ActKind.NOT_USEFUL.value)
    reasons: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, body in connection.execute(query):
        act = loads(body, Act)
        if act.text:
            reasons[act.incident].append((number, act.text))
    return reasons
