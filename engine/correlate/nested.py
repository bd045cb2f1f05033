"""Alerts of correlations as matches that other correlations count: each alert is one occurrence at the time of its start.

Pending and retracted alerts make no match. A verdict replaces the earlier one of its key, so matches of alerts that no longer
hold are retracted: a correlation over correlations depends on the set of lines alone, as everything does.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from engine.codec import dumps, loads
from engine.correlate.entities import Entity, entity_labels
from engine.model.incidents import Alert, Capture, Verdict
from engine.model.matches import Match, Value

MAX_ENTITIES = 20_000  # of one rule; matches of those that changed longest ago can no longer be retracted
_PREFIX = "alerts:"  # rule ids contain no colon


class Nested:
    """The alerts of correlations that others count, as matches by rule and entity.

    Args:
        state: the mapping that they are stored in, read rule by rule when needed; None: nothing is stored.
    """

    def __init__(self, state: MutableMapping[str, str] | None) -> None:
        self._state = state
        self._matches: dict[str, dict[Entity, tuple[Match, ...]]] = {}
        self._changed: set[str] = set()

    def replace(self, verdict: Verdict) -> tuple[list[Match], list[Match]]:
        """Replace the matches of the verdict's key; return those that are retracted, and those that are new."""
        _, rule_id, entity = verdict.key
        of_rule = self._of_rule(rule_id)
        before = of_rule.get(entity, ())
        now = tuple(_matches(verdict))
        if now != before:
            of_rule.pop(entity, None)
            of_rule[entity] = now  # last, so that the first are those that changed longest ago
            self._changed.add(rule_id)
        retracted = [match for match in before if match not in now and not _is_final(match, verdict)]
        return retracted, [match for match in now if match not in before]

    def store(self) -> None:
        """Store the rules whose matches have changed."""
        if self._state is None:
            return
        for rule_id in sorted(self._changed):
            newest = [(entity, matches) for entity, matches in self._matches[rule_id].items() if matches][-MAX_ENTITIES:]
            self._matches[rule_id] = dict(newest)
            self._state[_PREFIX + rule_id] = dumps(newest)
        self._changed.clear()

    def _of_rule(self, rule_id: str) -> dict[Entity, tuple[Match, ...]]:
        if rule_id not in self._matches:
            stored = self._state.get(_PREFIX + rule_id) if self._state is not None else None
            self._matches[rule_id] = dict(loads(stored or "[]", list[tuple[Entity, tuple[Match, ...]]]))
        return self._matches[rule_id]


def _is_final(match: Match, verdict: Verdict) -> bool:
    """Return whether the alert of an earlier match is final: `verdict` leaves it out, and it is never retracted."""
    repeated = any(alert.starts_at == match.at for alert in verdict.alerts)
    return verdict.final_before is not None and match.at < verdict.final_before and not repeated


def _matches(verdict: Verdict) -> Iterator[Match]:
    for alert in verdict.alerts:
        if alert.status not in ("pending", "retracted"):
            yield _match(alert)


def _match(alert: Alert) -> Match:
    """Return an alert as a match; its event is the first that proves the alert, so that evidence refers to a line."""
    scope, rule_id, entity = alert.key
    return Match(
        rule_id=rule_id,
        event_id=alert.evidence[0] if alert.evidence else f"{rule_id}@{alert.starts_at.isoformat()}",
        source_id=alert.sources[0] if alert.sources else "",
        number=0,
        at=alert.starts_at,
        dated=alert.dated,
        captures={name: _single(capture) for name, capture in alert.captures.items() if capture.values},
        labels={"cluster": scope, **alert.labels, **entity_labels(entity)},
        items=alert.items,
    )


def _single(capture: Capture) -> Value:
    """Return the value that represents a capture: the largest number, else the earliest text."""
    return capture.values[0] if capture.max is None else capture.max
