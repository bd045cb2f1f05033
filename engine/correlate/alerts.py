"""From episodes to alerts: status, severity, labels, captures, evidence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.correlate.aggregate import Aggregate, total
from engine.correlate.entities import entity_labels
from engine.correlate.episodes import Episode
from engine.model.expressions import HELD_ITEMS, evaluate
from engine.model.incidents import Alert, AlertKey, Capture
from engine.model.rules import SEVERITIES, Rule

_SECOND = timedelta(seconds=1)


def alert_of(key: AlertKey, rule: Rule, episode: Episode, watermark: datetime | None, dated: bool) -> Alert | None:
    """Return the alert of an episode; None when the episode was over before it had lasted for the rule's `for`."""
    confirmed = episode.held_until(watermark) >= episode.since + timedelta(seconds=rule.for_s)
    if not confirmed and episode.ending is not None:
        return None
    summed = total({id(part): part for entry in episode.entries for part in entry.parts}.values())
    count = sum(entry.weight for entry in episode.entries)
    status = "resolved" if episode.ending else "firing"
    return described(
        Alert(
            key=key,
            status=status if confirmed else "pending",
            severity=escalated(rule, count, episode.last - episode.entries[0].first, summed),
            starts_at=episode.entries[0].first,
            last_seen=episode.last,
            ends_at=episode.ending.at if episode.ending else None,
            count=count,
            dated=dated,
            why=episode.ending.why if episode.ending else episode.doubt,
        ),
        summed,
    )


def described(alert: Alert, summed: Aggregate) -> Alert:
    """Return `alert` with the labels, captures, items, events and sources of its matches."""
    return replace(
        alert,
        labels=dict(sorted({**summed.labels, **entity_labels(alert.key[2])}.items())),
        captures=summed.captured(),
        events=summed.events(),
        evidence=summed.evidence(),
        sources=tuple(summed.sources),
        items=tuple(summed.items),
        offsets_s=tuple((at - alert.starts_at) // _SECOND for at, _ in summed.outer) if alert.dated else (),
    )


def escalated(rule: Rule, count: int, lasting: timedelta, summed: Aggregate) -> str:
    """Return the severity of the rule, or the highest one of its escalations that hold."""
    if not rule.escalate:
        return rule.severity
    values = _values(summed.captured())
    environment = {**values, "count": count, "lasting": lasting.total_seconds(), HELD_ITEMS: frozenset(summed.items)}
    reached = [step.to for step in rule.escalate if evaluate(step.when, environment) is True]
    return max((rule.severity, *reached), key=SEVERITIES.index)


def _values(captures: Mapping[str, Capture]) -> dict[str, str | float]:
    """Return one value for each capture: the largest number, else the earliest text."""
    return {name: capture.values[0] if capture.max is None else capture.max for name, capture in captures.items()}
