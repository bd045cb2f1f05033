"""A trouble as an incident: labels and captures gathered, the runbook filled in, evidence and symptoms chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from engine.incident import render
from engine.incident.alert_groups import AlertGroup
from engine.incident.links import is_of_others
from engine.model.expressions import Result, evaluate
from engine.model.incidents import Alert, Capture, Evidence, Incident, Roster, Symptom
from engine.model.matches import Value
from engine.model.rules import SEVERITIES, Plan, Rule

MAX_VALUES = 10
MAX_EVIDENCE = 8
MAX_SYMPTOMS = 500  # told one by one; of the others of a rule one entry says how many they are
PLACES = ("host", "container", "pod", "namespace", "region", "environment")  # labels that say where a log was taken
_NUMBERS = ("first", "last", "min", "max", "sum")


class Circumstances(Struct, frozen=True):
    """What is known besides the alerts: the rules, who belongs to the scope."""

    plan: Plan
    rules: Mapping[str, Rule]
    roster: Roster


def compose(trouble: AlertGroup, around: Circumstances, incident_id: str) -> Incident:
    """Return the incident that tells of `trouble`; its revision is 0 and its evidence not yet looked up."""
    root, rule = trouble.root, around.rules[trouble.root.key[1]]
    stage = around.rules[trouble.stages[-1].key[1]] if trouble.stages else rule
    symptoms = _symptoms(trouble, around)
    captures = _captures(trouble)
    labels = _labels(trouble, rule)
    told = (*trouble.firings, *trouble.stages)
    environment = _environment(told, around, captures, _without_places(labels, root, rule))
    said = render.words(rule, environment)
    then = said if stage is rule else render.words(stage, environment)
    named = next((each for each in rule.told_as if evaluate(each.when, environment) is True), None)
    severities = [*_severities(trouble), *([around.rules[named.rule].severity] if named else [])]
    ended = [alert.ends_at for alert in told if alert.ends_at is not None]
    over = len(ended) == len(told)
    pending = all(alert.status == "pending" for alert in told)
    return Incident(
        id=incident_id,
        key=root.key,
        revision=0,
        rule=named.rule if named else rule.id,
        title=_title(root, render.prose(named.title if named else said.title, environment)),
        severity=max(severities, key=SEVERITIES.index),
        status="resolved" if over else "open",
        component=rule.component,
        labels=labels,
        first_seen=min((alert.starts_at for alert in told if alert.dated), default=None),
        last_seen=max((alert.last_seen for alert in trouble.alerts() if alert.dated), default=None),
        resolved_at=max(ended) if over else None,
        count=sum(alert.count for alert in trouble.firings),
        cause=_cause(said, then, environment),
        impact=render.prose(then.impact, environment),
        fix=tuple(render.step(step, environment, _settings(told)) for step in render.fitting(stage.runbook.fix, environment)),
        verify=render.command(stage.runbook.verify, environment),
        symptoms=symptoms,
        captures={name: _single(capture) for name, capture in captures.items()},
        also_possible=trouble.possible,
        next_checks=tuple(render.prose(check, environment) for check in stage.runbook.next_checks),
        references=stage.runbook.references,
        stage=stage.id if stage is not rule else "",
        why=trouble.stages[-1].why if trouble.stages else trouble.firings[-1].why,
        pending=pending,
        alerts=trouble.keys(),
        opened_at=root.starts_at,
    )


def evidence_ids(trouble: AlertGroup) -> tuple[str, ...]:
    """Return the events that prove the trouble: the root's, then one of each stage and symptom, at most MAX_EVIDENCE."""
    chosen = dict.fromkeys(event for alert in trouble.firings for event in alert.evidence)
    others = (alert.evidence[0] for alert in (*trouble.stages, *trouble.symptoms) if alert.evidence)
    return tuple(dict.fromkeys((*list(chosen)[:6], *others)))[:MAX_EVIDENCE]


def proven(ids: Sequence[str], known: Mapping[str, Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence of `ids` that is known, in their order."""
    return tuple(known[event_id] for event_id in ids if event_id in known)


def _title(root: Alert, title: str) -> str:
    return f"Others, not kept apart: {title}" if is_of_others(root.key) else title


def _cause(said: render.RunbookText, then: render.RunbookText, environment: Mapping[str, Result]) -> str:
    first = render.prose(said.cause, environment)
    return first if then is said else f"{first} Then: {render.prose(then.cause, environment)}"


def _severities(trouble: AlertGroup) -> Iterator[str]:
    """Yield how severe the trouble is and what it has led to: a harmless cause of a lost record is not harmless. What is only
    expected has not come yet."""
    yield from (alert.severity for alert in (*trouble.firings, *trouble.stages))
    yield from (alert.severity for alert in trouble.symptoms if alert.status != "pending")


def _symptoms(trouble: AlertGroup, around: Circumstances) -> tuple[Symptom, ...]:
    """Return what the trouble explains, one entry per rule and entity; an event counts once, for the explaining rule."""
    counted = {event for alert in (*trouble.firings, *trouble.stages) for event in alert.events}
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Symptom] = {}
    for alert in trouble.symptoms:
        count = alert.count - len(counted & set(alert.events))
        counted |= set(alert.events)
        rule = around.rules.get(alert.key[1])
        if count <= 0 or rule is None:
            continue
        labels = _named(alert)
        environment = _environment((alert,), around, alert.captures, _without_places({**alert.labels, **labels}, alert, rule))
        earlier = found.get((rule.id, alert.key[2]))
        seen = alert.starts_at if alert.dated else None
        before = earlier.count if earlier else 0
        title = render.prose(render.words(rule, environment).title, environment)
        first = earlier.first_seen if earlier and earlier.first_seen else seen
        found[rule.id, alert.key[2]] = Symptom(rule.id, title, before + count, labels, first)
    return _bounded(tuple(found.values()))


def _bounded(symptoms: tuple[Symptom, ...]) -> tuple[Symptom, ...]:
    """Return the first symptoms, and the others of each rule as one."""
    others: dict[str, list[Symptom]] = {}
    for symptom in symptoms[MAX_SYMPTOMS:]:
        others.setdefault(symptom.rule, []).append(symptom)
    summed = (
        Symptom(
            rule_id,
            f"{len(alike):,} others such as: {alike[0].title}",
            sum(each.count for each in alike),
            {},
            min((each.first_seen for each in alike if each.first_seen), default=None),
        )
        for rule_id, alike in others.items()
    )
    return (*symptoms[:MAX_SYMPTOMS], *summed)


def _named(alert: Alert) -> dict[str, str]:
    return {name: value for name, value in alert.key[2] if not value.startswith("?")}


def _labels(trouble: AlertGroup, rule: Rule) -> dict[str, str]:
    """Return the root's labels; names of its entity that it lacks come from the first stage or symptom that has them."""
    known, entity = {**trouble.root.labels, **_named(trouble.root)}, dict(trouble.root.key[2])
    for alert in (*trouble.firings, *trouble.stages, *trouble.symptoms):
        known = {**{name: value for name, value in _named(alert).items() if name in entity}, **known}
    return {**known, **rule.labels}


def _without_places(labels: Mapping[str, str], alert: Alert, rule: Rule) -> dict[str, str]:
    """Return the labels that templates may name: where a log was taken is never the host, say, that its lines are about."""
    entity, captured = dict(alert.key[2]), rule.captures.keys() | alert.captures.keys()
    return {name: value for name, value in labels.items() if name not in PLACES or name in entity or name not in captured}


def _captures(trouble: AlertGroup) -> dict[str, Capture]:
    """Return the captures of the trouble; what the root is named by is never overruled by what a symptom captured."""
    own = _merged_captures((*trouble.firings, *trouble.stages))
    fixed = _named(trouble.root).keys() - own.keys()
    every = _merged_captures(trouble.alerts())
    return {name: capture for name, capture in every.items() if name not in fixed}


def _merged_captures(alerts: Iterable[Alert]) -> dict[str, Capture]:
    """Return every capture: a name belongs to the first alert that has it, and spans the alerts of that one's rule.

    Other rules may use the same word for something else, so theirs are not mixed in.
    """
    merged: dict[str, Capture] = {}
    owner: dict[str, str] = {}
    for alert in alerts:
        for name, capture in alert.captures.items():
            if owner.setdefault(name, alert.key[1]) == alert.key[1]:
                merged[name] = _joined(merged[name], capture) if name in merged else capture
    return merged


def _joined(one: Capture, other: Capture) -> Capture:
    values = tuple(dict.fromkeys((*one.values, *other.values)))[:MAX_VALUES]
    if one.max is None or other.max is None or one.min is None or other.min is None:
        return Capture(values, one.first, one.last, one.min, one.max, one.sum)
    total = (one.sum or 0) + (other.sum or 0)
    return Capture(values, one.first, other.last, min(one.min, other.min), max(one.max, other.max), total)


def _environment(
    told: Sequence[Alert], around: Circumstances, captures: Mapping[str, Capture], labels: Mapping[str, str]
) -> dict[str, Result]:
    """Return what templates may name: context, captures and their aggregates, labels; what is missing is not in it.

    Labels win: they say whom the alert is about, while a symptom may have captured somebody else under the same name.
    """
    scope = told[0].key[0]
    environment: dict[str, Result] = dict(_configured(around.plan, scope))
    brokers = around.roster.members.get("broker", ())
    if brokers:
        environment["brokers"] = ",".join(brokers)
    for name, capture in captures.items():
        environment[name] = _single(capture)
        environment[f"{name}.all"] = list(capture.values)
        aggregates = ((each, getattr(capture, each)) for each in _NUMBERS)
        environment.update((f"{name}.{each}", _whole(value)) for each, value in aggregates if value is not None)
    return {**environment, **labels, **dict(_times(told))}


def _configured(plan: Plan, scope: str) -> Iterator[tuple[str, str]]:
    """Yield the configuration's values for a scope: `name` for all scopes, `<scope>.name` for one."""
    for name, value in sorted(plan.context.items()):
        cluster, _, own = name.rpartition(".")
        if cluster in ("", scope):
            yield own, value


def _settings(told: Sequence[Alert]) -> dict[str, str]:
    """Return what the processes in trouble run with, the latest stage's word counting most."""
    return {name: value for alert in told for name, value in alert.settings.items()}


def _times(told: Sequence[Alert]) -> Iterator[tuple[str, Result]]:
    yield "count", sum(alert.count for alert in told if alert.key == told[0].key)
    dated = [alert for alert in told if alert.dated]
    if dated:
        first, last = min(a.starts_at for a in dated), max(a.ends_at or a.last_seen for a in dated)
        yield "first_seen", _stamp(first)
        yield "last_seen", _stamp(max(a.last_seen for a in dated))
        yield "duration_s", (last - first).total_seconds()
        yield "duration", render.human_ms((last - first).total_seconds() * 1000)


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _single(capture: Capture) -> Value:
    """Return the one value that stands for a capture: the largest number, else the first text."""
    return capture.values[0] if capture.max is None else _whole(capture.max)


def _whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number
