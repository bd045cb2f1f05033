"""How people fared with each rule: how often they were told, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Connection, func, select

from engine.codec import loads
from engine.model.acts import NO_HANDLING, Act, ActKind, Handling, RuleStats
from engine.model.notifications import DeliveryState
from engine.store.acts import shown_state
from engine.store.schema import acts, attempts, handlings, incidents, text

_HANDLED = incidents.outerjoin(handlings, handlings.c.incident == incidents.c.id)
_NO_INCIDENTS = ("pending", "merged", "retracted")
_REASONS = 3


def rule_stats(connection: Connection, since: datetime) -> Sequence[RuleStats]:
    """Return the stats of every rule with incidents that began at `since` or later, or were stored then if their lines have no
    times. The rules with the most incidents that were not useful come first, then those that people were told of most often."""
    table, state = incidents.c, shown_state().label("shown")
    query = select(table.id, table.rule, table.first_seen, table.until, state, handlings.c.body).select_from(_HANDLED)
    query = query.where(func.coalesce(table.first_seen, table.changed_at) >= text(since), state.not_in(_NO_INCIDENTS))
    of_rule: defaultdict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        of_rule[row.rule].append(row)
    delivered = attempts.c.outcome == DeliveryState.DELIVERED.value
    told = set(connection.scalars(select(attempts.c.incident).where(delivered).distinct()))
    by_acknowledgement = acts.c.kind == ActKind.ACKNOWLEDGE.value
    acknowledged = set(connection.scalars(select(acts.c.incident).where(by_acknowledgement).distinct()))
    reasons = _reasons(connection)
    stats = [_stats(rule, rows, told, acknowledged, reasons) for rule, rows in of_rule.items()]
    return sorted(stats, key=lambda each: (-each.not_useful, -each.told, -each.incidents, each.rule))


def _stats(rule: str, rows: Sequence[Any], told: set[str], acknowledged: set[str], reasons: dict[str, list[str]]) -> RuleStats:
    every = [(row, NO_HANDLING if row.body is None else loads(row.body, Handling)) for row in rows]
    lasted = [seconds for row, handling in every if (seconds := _lasted_s(row, handling)) is not None]
    return RuleStats(
        rule=rule,
        incidents=len(rows),
        told=sum(row.id in told for row in rows),
        acknowledged=sum(row.id in acknowledged for row in rows),
        useful=sum(handling.useful is True for _, handling in every),
        not_useful=sum(handling.useful is False for _, handling in every),
        resolve_s=median(lasted) if lasted else None,
        reasons=tuple(reason for row in rows for reason in reasons.get(row.id, ()))[-_REASONS:],
    )


def _lasted_s(row: Any, handling: Handling) -> float | None:
    """Return the seconds from the first event of a resolved incident to its end: by the logs, or when a person resolved it;
    None for others."""
    if row.shown != "resolved" or row.first_seen is None:
        return None
    is_by_person = handling.state == "resolved" and handling.at is not None
    end = handling.at if is_by_person and handling.at is not None else datetime.fromisoformat(row.until)
    return max(0.0, (end - datetime.fromisoformat(row.first_seen)).total_seconds())


def _reasons(connection: Connection) -> dict[str, list[str]]:
    """Return why incidents were called not useful, by incident, oldest first."""
    query = select(acts.c.body).where(acts.c.kind == ActKind.NOT_USEFUL.value).order_by(acts.c.number)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for body in connection.scalars(query):
        act = loads(body, Act)
        if act.text:
            reasons[act.incident].append(act.text)
    return reasons
