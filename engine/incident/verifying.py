"""What the cluster says about an incident, when it is asked: symptoms that are its answers hold an incident open, or verify
that it is over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.model.incidents import DOUBTED, VERIFIED, Alert
from engine.model.rules import SEVERITIES, Rule
from engine.model.words import worded


def statements(symptoms: Iterable[Alert], rules: Mapping[str, Rule]) -> list[Alert]:
    """Return the symptoms by which the cluster itself says that something is wrong."""
    return [alert for alert in symptoms if _is_statement(rules.get(alert.key[1]))]


def doubted(symptoms: Iterable[Alert]) -> list[Alert]:
    """Return the symptoms that go on, although logs or the cluster say that they are over: the other does not."""
    return [alert for alert in symptoms if alert.ends_at is None and DOUBTED in alert.why]


def why_over(why: str, stated: Sequence[Alert], is_over: bool) -> str:
    """Return why the alerts of an incident ended, with what the cluster says of it.

    Args:
        why: why its own alerts ended.
        stated: the statements of the cluster among its symptoms.
        is_over: whether the incident is over.
    """
    if not is_over or VERIFIED in why:
        return why
    verified = max((alert for alert in stated if alert.why.startswith(VERIFIED)), key=_end, default=None)
    if verified is None:
        return why
    return worded("{why}; {further}", why=why, further=verified.why) if why else verified.why


def why_open(why: str, is_own_over: bool, stated: Sequence[Alert], titles: Sequence[str]) -> str:
    """Return why an incident is open although its own alerts are over; `why` if they are not.

    Args:
        titles: of the statements, in their order.
    """
    going_on = [title for alert, title in zip(stated, titles, strict=True) if alert.ends_at is None]
    if not is_own_over or not going_on:
        return why
    return worded("its own lines say that it is over, but the cluster, when asked, does not: {title}", title=going_on[0])


def _is_statement(rule: Rule | None) -> bool:
    return rule is not None and rule.asked and rule.severity != SEVERITIES[0]


def _end(alert: Alert) -> str:
    return alert.ends_at.isoformat() if alert.ends_at is not None else ""
