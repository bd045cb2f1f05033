"""Linked alerts as troubles: a tree with one root, its refirings, its later stages and its symptoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.incident.links import AlertLinks
from engine.model.incidents import Alert, AlertKey
from engine.model.rules import SEVERITIES


class AlertGroup(Struct, frozen=True):
    """Alerts that make one incident. `root` and its refirings (`told`, by time, root first), later `stages` by time,
    everything else is a symptom, causes before what they explain. `possible`: rules that could have been the cause as well."""

    root: Alert
    told: tuple[Alert, ...]
    stages: tuple[Alert, ...]
    symptoms: tuple[Alert, ...]
    possible: tuple[str, ...]

    def alerts(self) -> tuple[Alert, ...]:
        """Return every alert of the trouble: told, stages, symptoms."""
        return (*self.told, *self.stages, *self.symptoms)

    def keys(self) -> tuple[AlertKey, ...]:
        """Return the keys of its alerts, the root's first, each once."""
        return tuple(dict.fromkeys(alert.key for alert in self.alerts()))

    @property
    def informs(self) -> bool:
        """Whether its root only informs: nobody is told of it."""
        return self.root.severity == "info"


def troubles(links: AlertLinks) -> list[AlertGroup]:
    """Return every group of linked alerts as a Trouble, by start."""
    shape = _shape(links)
    found = [_trouble(positions, links, shape) for positions in _groups(links)]
    return sorted(found, key=lambda trouble: (trouble.root.starts_at, trouble.root.key))


def _groups(links: AlertLinks) -> Iterator[list[int]]:
    """Yield the connected groups of positions."""
    group_of = list(range(len(links.alerts)))

    def find(position: int) -> int:
        while group_of[position] != position:
            group_of[position] = group_of[group_of[position]]
            position = group_of[position]
        return position

    for one, other in (*links.parent.items(), *links.same, *links.stage):
        group_of[find(one)] = find(other)
    members: dict[int, list[int]] = defaultdict(list)
    for position in range(len(links.alerts)):
        members[find(position)].append(position)
    yield from members.values()


class _GroupShape(Struct, frozen=True):
    """What is asked of the links of all alerts once. `below`: what something explains, precedes or tells in full; `causes`:
    what explains something; `retold`: what adds nothing to a fuller alert; `next`: the stages that follow an alert directly."""

    below: frozenset[int]
    causes: frozenset[int]
    retold: frozenset[int]
    next: Mapping[int, Sequence[int]]


def _shape(links: AlertLinks) -> _GroupShape:
    following: dict[int, list[int]] = defaultdict(list)
    for earlier, later in links.stage:
        following[earlier].append(later)
    return _GroupShape(
        below=frozenset((*(later for _, later in links.stage), *(vague for _, vague in links.same), *links.parent)),
        causes=frozenset(links.parent.values()),
        retold=frozenset(vague for full, vague in links.same if links.alerts[vague].key != links.alerts[full].key),
        next=following,
    )


def _trouble(positions: Sequence[int], links: AlertLinks, shape: _GroupShape) -> AlertGroup:
    alerts = links.alerts
    root = _root(positions, links, shape)
    told = {p for p in positions if alerts[p].key == alerts[root].key}
    stages = _later_stages(told, alerts[root].key, links, shape)
    rest = [p for p in positions if p not in told and p not in stages and p not in shape.retold]
    return AlertGroup(
        root=alerts[root],
        told=tuple(_by_time(told, alerts)),
        stages=tuple(_by_time(stages, alerts)),
        symptoms=tuple(_causes_first(rest, links)),
        possible=_possible(positions, root, links),
    )


def _root(positions: Sequence[int], links: AlertLinks, shape: _GroupShape) -> int:
    """Return the alert that nothing in its group explains or precedes: the most severe, then earliest, then by key."""
    tops = [p for p in positions if p not in shape.below] or list(positions)
    alerts = links.alerts
    return min(tops, key=lambda p: (p not in shape.causes, -_rank(alerts[p]), alerts[p].starts_at, alerts[p].key))


def _later_stages(told: Iterable[int], key: AlertKey, links: AlertLinks, shape: _GroupShape) -> set[int]:
    """Return the alerts that continue the root's trouble: they alone change the fix."""
    reached = set(told)
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
    """Return the alerts so that each comes after what explains it; else by time."""
    depth: dict[int, int] = {}
    levels: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        chain = [position]
        while chain[-1] in links.parent and chain[-1] not in depth:
            chain.append(links.parent[chain[-1]])
        below = depth.get(chain[-1], 1)
        depth.update((each, below + n) for n, each in enumerate(reversed(chain)))
        levels[depth[position]].append(position)
    return [alert for level in sorted(levels) for alert in _by_time(levels[level], links.alerts)]


def _by_time(positions: Iterable[int], alerts: Sequence[Alert]) -> list[Alert]:
    return sorted((alerts[p] for p in positions), key=lambda alert: (not alert.dated, alert.starts_at, alert.key))


def _rank(alert: Alert) -> int:
    return SEVERITIES.index(alert.severity)


def ordered(alerts: Mapping[AlertKey, tuple[Alert, ...]]) -> list[Alert]:
    """Return all alerts of a ledger's answer in one order that depends on nothing but themselves; retracted ones left out."""
    every = [alert for key in sorted(alerts) for alert in alerts[key] if alert.status != "retracted"]
    return sorted(every, key=lambda alert: (alert.starts_at, alert.key))
