"""Linked alerts as groups: a tree with one root, its refirings, its later stages and its symptoms. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.incident.links import AlertLinks
from engine.model.incidents import Alert, AlertKey
from engine.model.rules import SEVERITIES


class AlertGroup(Struct, frozen=True):
    """Alerts that make one incident.

    Attributes:
        root: the alert that nothing in the group explains or precedes.
        firings: the root and its refirings, in order of time, the root first.
        stages: the alerts that continue them, in order of time.
        symptoms: all others, each after the alert that explains it.
        possible: ids of rules that could have been the cause as well, sorted.
    """

    root: Alert
    firings: tuple[Alert, ...]
    stages: tuple[Alert, ...]
    symptoms: tuple[Alert, ...]
    possible: tuple[str, ...]

    def alerts(self) -> tuple[Alert, ...]:
        """Return every alert of the group: firings, stages, symptoms."""
        return (*self.firings, *self.stages, *self.symptoms)

    def keys(self) -> tuple[AlertKey, ...]:
        """Return the keys of its alerts, each once, the root's first."""
        return tuple(dict.fromkeys(alert.key for alert in self.alerts()))

    @property
    def informs(self) -> bool:
        """Whether its root only informs: it makes no incident."""
        return self.root.severity == "info"


def alert_groups(links: AlertLinks) -> list[AlertGroup]:
    """Return every group of linked alerts, ordered by the start of the root."""
    shape = _shape(links)
    groups = [_alert_group(positions, links, shape) for positions in _connected(links)]
    return sorted(groups, key=lambda group: (group.root.starts_at, group.root.key))


def _connected(links: AlertLinks) -> Iterator[list[int]]:
    """Yield the connected components of the links, as positions (union-find)."""
    parent_of = list(range(len(links.alerts)))

    def find(position: int) -> int:
        while parent_of[position] != position:
            parent_of[position] = parent_of[parent_of[position]]
            position = parent_of[position]
        return position

    for position, other in (*links.parent.items(), *links.same, *links.stage):
        parent_of[find(position)] = find(other)
    members: dict[int, list[int]] = defaultdict(list)
    for position in range(len(links.alerts)):
        members[find(position)].append(position)
    yield from members.values()


class _GroupShape(Struct, frozen=True):
    """Properties of the links that all groups need, computed once.

    Attributes:
        below: alerts that another one explains, precedes or repeats with more names.
        causes: alerts that explain another one.
        repeated: alerts that add nothing to a fuller alert of their rule.
        next: the alerts that continue an alert directly.
    """

    below: frozenset[int]
    causes: frozenset[int]
    repeated: frozenset[int]
    next: Mapping[int, Sequence[int]]


def _shape(links: AlertLinks) -> _GroupShape:
    following: dict[int, list[int]] = defaultdict(list)
    for earlier, later in links.stage:
        following[earlier].append(later)
    return _GroupShape(
        below=frozenset((*(later for _, later in links.stage), *(vague for _, vague in links.same), *links.parent)),
        causes=frozenset(links.parent.values()),
        repeated=frozenset(vague for full, vague in links.same if links.alerts[vague].key != links.alerts[full].key),
        next=following,
    )


def _alert_group(positions: Sequence[int], links: AlertLinks, shape: _GroupShape) -> AlertGroup:
    alerts = links.alerts
    root = _root(positions, links, shape)
    firings = {p for p in positions if alerts[p].key == alerts[root].key}
    stages = _later_stages(firings, alerts[root].key, links, shape)
    rest = [p for p in positions if p not in firings and p not in stages and p not in shape.repeated]
    return AlertGroup(
        root=alerts[root],
        firings=tuple(_by_time(firings, alerts)),
        stages=tuple(_by_time(stages, alerts)),
        symptoms=tuple(_causes_first(rest, links)),
        possible=_possible(positions, root, links),
    )


def _root(positions: Sequence[int], links: AlertLinks, shape: _GroupShape) -> int:
    """Return the root: of the alerts that nothing explains or precedes the most severe, then the earliest, then by key.

    One that explains another is preferred to one that explains nothing.
    """
    tops = [p for p in positions if p not in shape.below] or list(positions)
    alerts = links.alerts
    return min(tops, key=lambda p: (p not in shape.causes, -_rank(alerts[p]), alerts[p].starts_at, alerts[p].key))


def _later_stages(firings: Iterable[int], key: AlertKey, links: AlertLinks, shape: _GroupShape) -> set[int]:
    """Return the alerts that continue the root, directly or through others: they alone change the fix."""
    reached = set(firings)
    waiting = list(reached)
    while waiting:
        fresh = [p for p in shape.next.get(waiting.pop(), ()) if p not in reached]
        reached.update(fresh)
        waiting += fresh
    return {p for p in reached if links.alerts[p].key != key}


def _possible(positions: Sequence[int], root: int, links: AlertLinks) -> tuple[str, ...]:
    chosen = links.alerts[root].key[1]
    rules = {links.alerts[other].key[1] for p in positions for other in links.others.get(p, ())}
    inside = {links.alerts[p].key[1] for p in positions if p in links.parent or p == root}
    return tuple(sorted(rules - inside - {chosen}))


def _causes_first(positions: Sequence[int], links: AlertLinks) -> list[Alert]:
    """Return the alerts in order of their distance from the root cause, then of time."""
    depth: dict[int, int] = {}
    levels: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        chain = [position]
        while chain[-1] in links.parent and chain[-1] not in depth:
            chain.append(links.parent[chain[-1]])
        below = depth.get(chain[-1], 1)
        depth.update((link, below + n) for n, link in enumerate(reversed(chain)))
        levels[depth[position]].append(position)
    return [alert for level in sorted(levels) for alert in _by_time(levels[level], links.alerts)]


def _by_time(positions: Iterable[int], alerts: Sequence[Alert]) -> list[Alert]:
    return sorted((alerts[p] for p in positions), key=lambda alert: (not alert.dated, alert.starts_at, alert.key))


def _rank(alert: Alert) -> int:
    return SEVERITIES.index(alert.severity)


def ordered(alerts: Mapping[AlertKey, tuple[Alert, ...]]) -> list[Alert]:
    """Return all alerts but retracted ones, ordered by start, then key: an order that depends on nothing but the alerts."""
    every = [alert for key in sorted(alerts) for alert in alerts[key] if alert.status != "retracted"]
    return sorted(every, key=lambda alert: (alert.starts_at, alert.key))
