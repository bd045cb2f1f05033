"""Alerts of correlations, as the matches that other correlations count: each alert is one occurrence, when it started.

An alert that is pending or retracted is none. A verdict replaces what was said of its key before, so earlier matches are taken
back where they no longer hold: what a correlation over correlations says depends on the set of lines, as everything does.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from engine.codec import dumps, loads
from engine.correlate.entities import Entity, entity_labels
from engine.model.incidents import Alert, Capture, Verdict
from engine.model.matches import Match, Value

MAX_ENTITIES = 20_000  # of one rule; what longer ago changed can no longer be taken back
_PART = "alerts:"  # rules have no colon in their ids


class Nested:
    """What correlations that others count have said, as matches, by rule and entity.

    Args:
        state: what an earlier one stored; read rule by rule, as needed.
    """

    def __init__(self, state: MutableMapping[str, str] | None) -> None:
        self._state = state
        self._said: dict[str, dict[Entity, tuple[Match, ...]]] = {}
        self._changed: set[str] = set()

    def replace(self, verdict: Verdict) -> tuple[list[Match], list[Match]]:
        """Return the matches that `verdict` takes back, and those that it adds."""
        _, rule_id, entity = verdict.key
        said = self._of_rule(rule_id)
        before = said.get(entity, ())
        now = tuple(_matches(verdict))
        if now != before:
            said.pop(entity, None)
            said[entity] = now  # last, so that the first are those that changed longest ago
            self._changed.add(rule_id)
        gone = [match for match in before if match not in now and not _is_final(match, verdict)]
        return gone, [match for match in now if match not in before]

    def store(self) -> None:
        """Put what has changed into the state."""
        if self._state is None:
            return
        for rule_id in sorted(self._changed):
            kept = [(entity, matches) for entity, matches in self._said[rule_id].items() if matches][-MAX_ENTITIES:]
            self._said[rule_id] = dict(kept)
            self._state[_PART + rule_id] = dumps(kept)
        self._changed.clear()

    def _of_rule(self, rule_id: str) -> dict[Entity, tuple[Match, ...]]:
        if rule_id not in self._said:
            stored = self._state.get(_PART + rule_id) if self._state is not None else None
            self._said[rule_id] = dict(loads(stored or "[]", list[tuple[Entity, tuple[Match, ...]]]))
        return self._said[rule_id]


def _is_final(match: Match, verdict: Verdict) -> bool:
    """Return whether `verdict` does not speak of an earlier match any more: it stands, and is never taken back."""
    repeated = any(alert.starts_at == match.at for alert in verdict.alerts)
    return verdict.final_before is not None and match.at < verdict.final_before and not repeated


def _matches(verdict: Verdict) -> Iterator[Match]:
    for alert in verdict.alerts:
        if alert.status not in ("pending", "retracted"):
            yield _match(alert)


def _match(alert: Alert) -> Match:
    """Return an alert as a match; its event is the first that proves it, so that evidence leads to a line."""
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
    )


def _single(capture: Capture) -> Value:
    """Return the one value that stands for a capture: the largest number, else the earliest text."""
    return capture.values[0] if capture.max is None else capture.max
