"""Printed configurations: the settings that processes print when they start, the latest of each client. Pure.

The source, and the connector, the group or the client id in it tell whose a configuration is. Where several remain that differ,
there is no value. Everything here is a function of the set of configurations, not of their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.configs import BROKER, CLIENT_ID, GROUP_ID, Setting
from engine.model.incidents import Alert
from engine.model.matches import Match

PREFIX = "config:"
MAX_CLIENTS = 100  # of one source: those that started last

_OWNER_LABELS = ("connector", "task")  # labels that say for whom a worker made a client


class Printed(Struct, frozen=True):
    """One configuration: the kind of client, the connector and task it is for (`labels`), and its settings (`values`)."""

    at: datetime
    event_id: str
    kind: str
    labels: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def client_key(self) -> str:
        """The key of the client, which all its configurations share."""
        return "|".join((self.kind, self.values.get(CLIENT_ID, ""), *(self.labels.get(name, "") for name in _OWNER_LABELS)))


def printed_by(match: Match) -> Printed:
    """Return the configuration in a `config:` match."""
    labels = {name: match.labels[name] for name in _OWNER_LABELS if name in match.labels}
    values = {name: str(value) for name, value in match.captures.items()}
    return Printed(match.at, match.event_id, match.rule_id.removeprefix(PREFIX), labels, values)


def add_printed(of_source: dict[str, Printed], printed: Printed) -> bool:
    """Add a configuration to those of its source, by client; return whether that changed anything."""
    before = of_source.get(printed.client_key)
    if before is not None and _order(printed) <= _order(before):
        return False
    of_source[printed.client_key] = printed
    if len(of_source) > MAX_CLIENTS:
        oldest = min(of_source, key=lambda client: _order(of_source[client]))
        del of_source[oldest]
        return oldest != printed.client_key
    return True


def _order(printed: Printed) -> tuple[datetime, str, int, str]:
    """Return a sort key: the later configuration wins; of an event that was read in parts, the longer."""
    return printed.at, printed.event_id, len(printed.values), repr(sorted(printed.values.items()))


def setting(wanted: Setting, alert: Alert, own: Iterable[Printed], others: Iterable[Printed]) -> str | None:
    """Return the value of a setting that the subject of `alert` runs with; None when it is not certain.

    Args:
        own: the configurations printed into the logs of the alert's events.
        others: those of other logs. Only those of clients that the alert names count, and those of brokers if all agree.
    """
    kind, name = wanted
    candidates = [printed for printed in own if printed.kind == kind and not _contradicts(printed, alert)]
    candidates = candidates or [
        printed
        for printed in others
        if printed.kind == kind and not _contradicts(printed, alert) and _counts_elsewhere(printed, alert)
    ]
    most = max((_agreement(printed, alert) for printed in candidates), default=0)
    values = {printed.values.get(name) for printed in candidates if _agreement(printed, alert) == most}
    return values.pop() if len(values) == 1 else None


def _counts_elsewhere(printed: Printed, alert: Alert) -> bool:
    """Return whether a configuration in another log counts for the alert."""
    return printed.kind == BROKER or _agreement(printed, alert) > 0


def _contradicts(printed: Printed, alert: Alert) -> bool:
    group = printed.values.get(GROUP_ID)
    if group and group not in _values(alert, "group", group):
        return True
    return any(value not in _values(alert, name, value) for name, value in printed.labels.items())


def _agreement(printed: Printed, alert: Alert) -> int:
    """Return how many names of this configuration's client the alert has."""
    client, group = printed.values.get(CLIENT_ID, ""), printed.values.get(GROUP_ID, "")
    connector, task = (_values(alert, name, "") for name in _OWNER_LABELS)
    made_for = any(client.endswith(f"-{name}-{number}") for name in connector for number in task if name)
    same = sum(value in _values(alert, name, "") for name, value in printed.labels.items())
    named = sum(bool(value) and value in _values(alert, name, "") for name, value in (("group", group), ("client", client)))
    return same + made_for + named


def _values(alert: Alert, name: str, otherwise: str) -> set[str]:
    """Return the values that the alert has under `name`; `otherwise` alone if it has none."""
    captured = alert.captures.get(name)
    values = {str(value) for value in captured.values} if captured is not None else set()
    values |= {alert.labels[name]} if name in alert.labels else set()
    return values or {otherwise}
