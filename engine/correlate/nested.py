"""Alerts of correlations, as the matches that other correlations count: each alert is one occurrence, when it started.

An alert that is pending or retracted is none. A verdict replaces what was said of its key before, so earlier matches are taken
back where they no longer hold: what a correlation over correlations says depends on the set of lines, as everything does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping

from engine.codec import dumps, loads
from engine.correlate.logic import Entity, known_labels
from engine.model.incidents import Alert, Capture, Verdict
from engine.model.matches import Match, Value

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

    def replaced(self, verdict: Verdict) -> tuple[list[Match], list[Match]]:
        """Return the matches that `verdict` takes back, and those that it adds."""
        _, rule_id, entity = verdict.key
        said = self._of_rule(rule_id)
        before = said.get(entity, ())
        now = (*_final(before, verdict), *_matches(verdict))
        if now != before:
            said[entity] = now
            self._changed.add(rule_id)
        return [match for match in before if match not in now], [match for match in now if match not in before]

    def store(self) -> None:
        """Put what has changed into the state."""
        if self._state is None:
            return
        for rule_id in sorted(self._changed):
            kept = [(entity, matches) for entity, matches in self._said[rule_id].items() if matches]
            self._state[_PART + rule_id] = dumps(kept)
        self._changed.clear()

    def _of_rule(self, rule_id: str) -> dict[Entity, tuple[Match, ...]]:
        if rule_id not in self._said:
            stored = self._state.get(_PART + rule_id) if self._state is not None else None
            self._said[rule_id] = dict(loads(stored or "[]", list[tuple[Entity, tuple[Match, ...]]]))
        return self._said[rule_id]


def _final(before: Iterable[Match], verdict: Verdict) -> Iterator[Match]:
    """Yield the earlier matches that `verdict` does not speak of any more."""
    repeated = {alert.starts_at for alert in verdict.alerts}
    for match in before:
        if verdict.final_before is not None and match.at < verdict.final_before and match.at not in repeated:
            yield match


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
        labels={"cluster": scope, **alert.labels, **known_labels(entity)},
    )


def _single(capture: Capture) -> Value:
    """Return the one value that stands for a capture: the largest number, else the earliest text."""
    return capture.values[0] if capture.max is None else capture.max
