"""The course of an incident: when each of its alerts began and ended, how often, who wrote it. What the timeline draws."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from engine.incident.alert_groups import AlertGroup
from engine.model.incidents import Alert, AlertCourse, HeartbeatRun

MAX_COURSES = 60  # alerts kept apart; one entry for each rule counts the others
MAX_RHYTHMS = 30
_SOURCES = 3
# labels that name who wrote a line, or who it is about, besides the entity
_PARTICIPANTS = ("broker", "controller", "worker", "connector", "task", "group", "client", "client_id", "instance", "node")

TitleOf = Callable[[Alert], str]


def courses(group: AlertGroup, title_of: TitleOf, event_ids: Collection[str]) -> tuple[AlertCourse, ...]:
    """Return the course of every dated alert of a group: root and refirings, stages, symptoms; at most MAX_COURSES one by one.

    Args:
        event_ids: the events that the incident holds as evidence.
    """
    roles = [("root", group.firings), ("stage", group.stages), ("symptom", group.symptoms)]
    dated = [(role, alert) for role, alerts in roles for alert in alerts if alert.dated]
    kept = tuple(_course(role, alert, title_of(alert), event_ids) for role, alert in dated[:MAX_COURSES])
    return (*kept, *_summed(dated[MAX_COURSES:], title_of))


def rhythms(group: AlertGroup) -> tuple[HeartbeatRun, ...]:
    """Return the heartbeats around the silences that are a group's root, the earliest silence first, each once."""
    runs: list[HeartbeatRun] = []
    for run in (run for alert in group.firings for run in alert.heartbeats):
        if run not in runs:
            runs.append(run)
    return tuple(runs[:MAX_RHYTHMS])


def _course(role: str, alert: Alert, title: str, event_ids: Collection[str]) -> AlertCourse:
    names = {name for name, _ in alert.key[2]}.union(_PARTICIPANTS)
    return AlertCourse(
        role=role,
        rule=alert.key[1],
        title=title,
        severity=alert.severity,
        first=alert.starts_at,
        last=alert.last_seen,
        ended_at=None if role == "symptom" else alert.ends_at,
        count=alert.count,
        labels={name: value for name, value in sorted(alert.labels.items()) if name in names},
        sources=alert.sources[:_SOURCES],
        event_id=next((event_id for event_id in alert.evidence if event_id in event_ids), ""),
        offsets_s=alert.offsets_s,
        why=alert.why if alert.ends_at is not None and role == "root" else "",
    )


def _summed(alerts: list[tuple[str, Alert]], title_of: TitleOf) -> Iterator[AlertCourse]:
    """Yield one course for each role and rule, with the title of its first alert."""
    alike: dict[tuple[str, str], list[Alert]] = {}
    for role, alert in alerts:
        alike.setdefault((role, alert.key[1]), []).append(alert)
    for (role, rule), of_rule in alike.items():
        yield AlertCourse(
            role=role,
            rule=rule,
            title=title_of(of_rule[0]),
            severity=of_rule[0].severity,
            first=min(alert.starts_at for alert in of_rule),
            last=max(alert.last_seen for alert in of_rule),
            ended_at=None,
            count=sum(alert.count for alert in of_rule),
            labels={},
            alerts=len(of_rule),
        )
