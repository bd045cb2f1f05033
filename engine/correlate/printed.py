"""What processes run with: the configurations they printed when they started, the latest of each client. Pure.

Whose a configuration is, its source says, and the connector, the group or the client id in it. Where several remain that
disagree, nothing is said. Everything here is a function of the set of configurations seen, not of their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.model.configs import BROKER, CLIENT_ID, GROUP_ID, Setting
from engine.model.incidents import Alert
from engine.model.matches import Match

PREFIX = "config:"
MAX_CLIENTS = 100  # of one source, those that started last

_WHOSE = ("connector", "task")  # labels that say for whom a worker made a client


class Printed(Struct, frozen=True):
    """One configuration: what it is of, by which client, for which connector and task, and its settings."""

    at: datetime
    event_id: str
    kind: str
    labels: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def whose(self) -> str:
        """Return what a later configuration of the same client has in common with this one."""
        return "|".join((self.kind, self.values.get(CLIENT_ID, ""), *(self.labels.get(name, "") for name in _WHOSE)))


def printed_by(match: Match) -> Printed:
    """Return the configuration that a `config:` match bears."""
    labels = {name: match.labels[name] for name in _WHOSE if name in match.labels}
    values = {name: str(value) for name, value in match.captures.items()}
    return Printed(match.at, match.event_id, match.rule_id.removeprefix(PREFIX), labels, values)


def note(known: dict[str, Printed], printed: Printed) -> bool:
    """Add a configuration to those of its source; return whether it changed what is known."""
    before = known.get(printed.whose)
    if before is not None and _order(printed) <= _order(before):
        return False
    known[printed.whose] = printed
    if len(known) > MAX_CLIENTS:
        first = min(known, key=lambda whose: _order(known[whose]))
        del known[first]
        return first != printed.whose
    return True


def _order(printed: Printed) -> tuple[datetime, str, int, str]:
    """The later one counts; of an event that was read in parts, the longer."""
    return printed.at, printed.event_id, len(printed.values), repr(sorted(printed.values.items()))


def setting(wanted: Setting, alert: Alert, own: Iterable[Printed], others: Iterable[Printed]) -> str | None:
    """Return the value that what `alert` is about runs with; None when that is not known for certain.

    Args:
        own: the configurations printed into the logs in which the alert's events stand.
        others: those of the other logs. Only what the alert names counts of them, and the brokers' where all agree.
    """
    kind, name = wanted
    found = [each for each in own if each.kind == kind and not _contradicts(each, alert)]
    found = found or [each for each in others if each.kind == kind and not _contradicts(each, alert) and _far(each, alert)]
    most = max((_told(each, alert) for each in found), default=0)
    values = {each.values.get(name) for each in found if _told(each, alert) == most}
    return values.pop() if len(values) == 1 else None


def _far(printed: Printed, alert: Alert) -> bool:
    return printed.kind == BROKER or _told(printed, alert) > 0


def _contradicts(printed: Printed, alert: Alert) -> bool:
    group = printed.values.get(GROUP_ID)
    if group and group not in _values(alert, "group", group):
        return True
    return any(value not in _values(alert, name, value) for name, value in printed.labels.items())


def _told(printed: Printed, alert: Alert) -> int:
    """Return by how many names the alert is about the client of this configuration."""
    client, group = printed.values.get(CLIENT_ID, ""), printed.values.get(GROUP_ID, "")
    connector, task = (_values(alert, name, "") for name in _WHOSE)
    made_for = any(client.endswith(f"-{each}-{number}") for each in connector for number in task if each)
    same = sum(value in _values(alert, name, "") for name, value in printed.labels.items())
    named = sum(bool(value) and value in _values(alert, name, "") for name, value in (("group", group), ("client", client)))
    return same + made_for + named


def _values(alert: Alert, name: str, otherwise: str) -> set[str]:
    """Return what the alert calls its `name`, `otherwise` if it does not say."""
    captured = alert.captures.get(name)
    known = {str(value) for value in captured.values} if captured is not None else set()
    known |= {alert.labels[name]} if name in alert.labels else set()
    return known or {otherwise}
