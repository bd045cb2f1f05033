"""From a group of alerts to an incident: labels and captures merged, the runbook filled in, evidence and symptoms chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from engine.incident import render
from engine.incident.alert_groups import AlertGroup
from engine.incident.cluster_view import ClusterView, view_of, words_in
from engine.incident.course import courses, rhythms
from engine.incident.links import is_of_others
from engine.incident.verifying import doubted, statements, why_open, why_over
from engine.language import words_of
from engine.model.expressions import HELD_ITEMS, LANGUAGE, Result, evaluate
from engine.model.incidents import QUIET, Alert, Capture, Evidence, Incident, Roster, Symptom
from engine.model.matches import Value
from engine.model.pictures import ClusterPicture
from engine.model.prose import prose_of
from engine.model.rules import SEVERITIES, Plan, Rule
from engine.model.words import ENGLISH, filled, frame

MAX_VALUES = 10
MAX_EVIDENCE = 8
MAX_SYMPTOMS = 500  # listed one by one; one entry for each rule counts the others
# labels that say where a log was taken
PLACES = frozenset(
    ("host", "container", "pod", "namespace", "image", "compose_service", "compose_project", "unit", "region", "environment")
)
_OTHERS = frame("Others, not kept apart: {title}")
_STAGES = frame("{cause} Then: {following}")
_SUCH_AS = frame("{number:,} others such as: {title}")
_NUMBERS = ("first", "last", "min", "max", "sum")


class IncidentContext(Struct, frozen=True):
    """The context of a composed incident besides its alerts: rules by id, the roster of the scope, the picture of its cluster
    at a time, and the language of its texts; empty: English."""

    plan: Plan
    rules: Mapping[str, Rule]
    roster: Roster
    pictures: Callable[[datetime], ClusterPicture | None]
    language: str = ""


def compose(group: AlertGroup, context: IncidentContext, incident_id: str) -> Incident:
    """Return the incident of a group with its texts in all languages of the plan; its revision is 0 and its evidence is not
    looked up yet."""
    view = view_of(group.root, (*group.firings, *group.stages), context.pictures)
    incident = _composed(group, context, incident_id, view)
    translations = {
        language: _translation(incident, _composed(group, replace(context, language=language), incident_id, view))
        for language in context.plan.languages
    }
    return replace(incident, translations=translations) if translations else incident


def _translation(incident: Incident, translated: Incident) -> dict[str, str]:
    """Return the texts of `translated` by those of `incident`, without those that are equal."""
    pairs = zip(_texts(incident), _texts(translated), strict=True)
    return {english: text for english, text in pairs if english != text}


def _texts(incident: Incident) -> tuple[str, ...]:
    return (*prose_of(incident), *(course.title for course in incident.course))


def _composed(group: AlertGroup, context: IncidentContext, incident_id: str, view: ClusterView) -> Incident:
    root, rule = group.root, context.rules[group.root.key[1]]
    stage = context.rules[group.stages[-1].key[1]] if group.stages else rule
    symptoms = _symptoms(group, context)
    captures = _captures(group)
    labels = _labels(group, rule)
    main, words = (*group.firings, *group.stages), words_of(context.language or ENGLISH.language)
    environment = _environment(main, context, captures, _without_places(labels, root, rule))
    environment = {**environment, **view.values(environment)}
    stage_environment = {**environment, HELD_ITEMS: _held_items(main, stage)}
    text = render.words(rule, environment)
    stage_text = text if stage is rule else render.words(stage, stage_environment)
    named = next((told_as for told_as in rule.told_as if evaluate(told_as.when, environment) is True), None)
    title = _title(root, render.prose(named.title if named else text.title, environment))
    severities = [*_severities(group), *([context.rules[named.rule].severity] if named else [])]
    by_silence = any(alert.why == QUIET for alert in main)
    stated = statements(group.symptoms, context.rules)
    deciding = (*main, *(_lasting(group.symptoms, context) if by_silence else ()), *stated, *doubted(group.symptoms))
    ended = [alert.ends_at for alert in deciding if alert.ends_at is not None]
    is_over = len(ended) == len(deciding)
    pending = all(alert.status == "pending" for alert in main)
    return Incident(
        id=incident_id,
        key=root.key,
        revision=0,
        rule=named.rule if named else rule.id,
        title=title,
        severity=max(severities, key=SEVERITIES.index),
        status="resolved" if is_over else "open",
        component=rule.component,
        labels=labels,
        first_seen=min((alert.starts_at for alert in main if alert.dated), default=None),
        last_seen=max((alert.last_seen for alert in group.alerts() if alert.dated), default=None),
        resolved_at=max(ended) if is_over else None,
        count=sum(alert.count for alert in group.firings),
        cause=_cause(text, stage_text, environment),
        impact=view.impact(render.prose(stage_text.impact, environment), words_in(stage_text.impact, words)),
        fix=view.fix(stage, stage_environment, printed_settings(main), words),
        verify=render.command(stage.runbook.verify, environment),
        symptoms=symptoms,
        captures={name: _single(name, capture) for name, capture in captures.items()},
        also_possible=group.possible,
        next_checks=tuple(render.prose(check, environment) for check in stage.runbook.next_checks),
        references=stage.runbook.references,
        stage=stage.id if stage is not rule else "",
        why=_why(group, stated, is_over, context),
        pending=pending,
        alerts=group.keys(),
        opened_at=root.starts_at,
        is_silence=any(c.absence is not None and c.rule.id == root.key[1] for c in context.plan.correlations),
        course=courses(group, lambda a: title if named and a.key == root.key else _title_of(a, context), evidence_ids(group)),
        heartbeats=rhythms(group),
        blast=view.radius,
    )


def _why(group: AlertGroup, stated: Sequence[Alert], is_over: bool, context: IncidentContext) -> str:
    """Return how the incident began or ended, with what the cluster says of it when it is asked."""
    own = group.stages[-1].why if group.stages else group.firings[-1].why
    is_own_over = all(alert.ends_at is not None for alert in (*group.firings, *group.stages))
    doubts = [alert.why for alert in doubted(group.symptoms)]
    if doubts and (is_own_over or not own):
        return doubts[-1]
    if is_over or not stated:
        return why_over(own, stated, is_over)
    return why_open(own, is_own_over, stated, [_title_of(alert, context) for alert in stated])


def _title_of(alert: Alert, context: IncidentContext) -> str:
    """Return the title of an alert by itself; the id of its rule when the rules have it no more."""
    rule = context.rules.get(alert.key[1])
    if rule is None:
        return alert.key[1]
    labels = _without_places({**alert.labels, **_named(alert)}, alert, rule)
    environment = _environment((alert,), context, alert.captures, labels)
    return render.prose(render.words(rule, environment).title, environment)


def _lasting(symptoms: Iterable[Alert], context: IncidentContext) -> list[Alert]:
    """Return the symptoms that silence does not end, such as a killed task: silence alone does not end the incident before."""
    return [alert for alert in symptoms if alert.key[1] in context.rules and context.rules[alert.key[1]].clear.lasts]


def evidence_ids(group: AlertGroup) -> tuple[str, ...]:
    """Return the ids of the events that prove a group: those of its firings, then one of each stage and symptom.

    They are distinct, and at most MAX_EVIDENCE.
    """
    chosen = dict.fromkeys(event for alert in group.firings for event in alert.evidence)
    others = (alert.evidence[0] for alert in (*group.stages, *group.symptoms) if alert.evidence)
    return tuple(dict.fromkeys((*list(chosen)[:6], *others)))[:MAX_EVIDENCE]


def evidence_in_order(ids: Sequence[str], evidence: Mapping[str, Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence of `ids`, in their order; ids without evidence are left out."""
    return tuple(evidence[event_id] for event_id in ids if event_id in evidence)


def _title(root: Alert, title: str) -> str:
    return filled(_OTHERS, {"title": title}) if is_of_others(root.key) else title


def _cause(text: render.RunbookText, stage_text: render.RunbookText, environment: Mapping[str, Result]) -> str:
    cause = render.prose(text.cause, environment)
    if stage_text is text:
        return cause
    return filled(_STAGES, {"cause": cause, "following": render.prose(stage_text.cause, environment)})


def _severities(group: AlertGroup) -> Iterator[str]:
    """Yield the severities of a group's alerts, without pending symptoms.

    Symptoms count too: a harmless cause of a lost record is not harmless.
    """
    yield from (alert.severity for alert in (*group.firings, *group.stages))
    yield from (alert.severity for alert in group.symptoms if alert.status != "pending")


def _symptoms(group: AlertGroup, context: IncidentContext) -> tuple[Symptom, ...]:
    """Return the symptoms of a group, one for each rule and entity; an event counts once, for the rule that explains."""
    counted = {event for alert in (*group.firings, *group.stages) for event in alert.events}
    symptoms: dict[tuple[str, tuple[tuple[str, str], ...]], Symptom] = {}
    for alert in group.symptoms:
        count = alert.count - len(counted & set(alert.events))
        counted |= set(alert.events)
        rule = context.rules.get(alert.key[1])
        if count <= 0 or rule is None:
            continue
        earlier = symptoms.get((rule.id, alert.key[2]))
        starts_at = alert.starts_at if alert.dated else None
        before = earlier.count if earlier else 0
        title = _title_of(alert, context)
        first = earlier.first_seen if earlier and earlier.first_seen else starts_at
        symptoms[rule.id, alert.key[2]] = Symptom(rule.id, title, before + count, _named(alert), first)
    return _bounded(tuple(symptoms.values()))


def _bounded(symptoms: tuple[Symptom, ...]) -> tuple[Symptom, ...]:
    """Return the first MAX_SYMPTOMS symptoms, and one for all others of each rule."""
    others: dict[str, list[Symptom]] = {}
    for symptom in symptoms[MAX_SYMPTOMS:]:
        others.setdefault(symptom.rule, []).append(symptom)
    summed = (
        Symptom(
            rule_id,
            filled(_SUCH_AS, {"number": len(alike), "title": alike[0].title}),
            sum(symptom.count for symptom in alike),
            {},
            min((symptom.first_seen for symptom in alike if symptom.first_seen), default=None),
        )
        for rule_id, alike in others.items()
    )
    return (*symptoms[:MAX_SYMPTOMS], *summed)


def _named(alert: Alert) -> dict[str, str]:
    return {name: value for name, value in alert.key[2] if not value.startswith("?")}


def _labels(group: AlertGroup, rule: Rule) -> dict[str, str]:
    """Return the labels of the root; values that its entity lacks come from the first stage or symptom that has them."""
    labels, entity = {**group.root.labels, **_named(group.root)}, dict(group.root.key[2])
    for alert in (*group.firings, *group.stages, *group.symptoms):
        labels = {**{name: value for name, value in _named(alert).items() if name in entity}, **labels}
    return {**labels, **rule.labels}


def _without_places(labels: Mapping[str, str], alert: Alert, rule: Rule) -> dict[str, str]:
    """Return the labels that templates may use, without those of the log's place: its `host` must not hide a captured
    `host`."""
    entity, captured = dict(alert.key[2]), rule.captures.keys() | alert.captures.keys()
    return {name: value for name, value in labels.items() if name not in PLACES or name in entity or name not in captured}


def _captures(group: AlertGroup) -> dict[str, Capture]:
    """Return the captures of a group; a symptom's capture never replaces a value of the root's entity."""
    own = _merged_captures((*group.firings, *group.stages))
    fixed = _named(group.root).keys() - own.keys()
    every = _merged_captures(group.alerts())
    return {name: capture for name, capture in every.items() if name not in fixed}


def _merged_captures(alerts: Iterable[Alert]) -> dict[str, Capture]:
    """Return every capture by name, merged over the alerts of one rule: that of the first alert that has the name.

    Other rules may use the same name for something else, so their captures are not merged.
    """
    merged: dict[str, Capture] = {}
    owner: dict[str, str] = {}
    for alert in alerts:
        for name, capture in alert.captures.items():
            if owner.setdefault(name, alert.key[1]) == alert.key[1]:
                merged[name] = _joined(merged[name], capture) if name in merged else capture
    return merged


def _joined(first: Capture, other: Capture) -> Capture:
    values = tuple(dict.fromkeys((*first.values, *other.values)))[:MAX_VALUES]
    if first.max is None or other.max is None or first.min is None or other.min is None:
        return Capture(values, first.first, first.last, first.min, first.max, first.sum)
    total = (first.sum or 0) + (other.sum or 0)
    return Capture(values, first.first, other.last, min(first.min, other.min), max(first.max, other.max), total)


def _environment(
    alerts: Sequence[Alert], context: IncidentContext, captures: Mapping[str, Capture], labels: Mapping[str, str]
) -> dict[str, Result]:
    """Return the names that templates may use: context, captures and their aggregates, labels, times.

    Labels win: they name the entity, while a symptom may have captured another one under the same name. Missing values have no
    name. The items are those of the first alert's rule.
    """
    scope = alerts[0].key[0]
    environment: dict[str, Result] = dict(_configured(context.plan, scope))
    brokers = context.roster.members.get("broker", ())
    if brokers:
        environment["brokers"] = ",".join(brokers)
    for name, capture in captures.items():
        environment[name] = _single(name, capture)
        environment[f"{name}.all"] = list(capture.values)
        aggregates = ((number, getattr(capture, number)) for number in _NUMBERS)
        environment.update((f"{name}.{number}", _whole(value)) for number, value in aggregates if value is not None)
    held = _held_items(alerts, context.rules[alerts[0].key[1]])
    language = {LANGUAGE: context.language} if context.language else {}
    return {**environment, **labels, **dict(_times(alerts)), **language, HELD_ITEMS: held}


def _held_items(alerts: Iterable[Alert], rule: Rule) -> frozenset[str]:
    """Return the items of `rule` that held in any match of its alerts; other rules may use the same names for other items."""
    return frozenset(name for alert in alerts if alert.key[1] == rule.id for name in alert.items)


def _configured(plan: Plan, scope: str) -> Iterator[tuple[str, str]]:
    """Yield the context of the configuration for a scope: `name` for all scopes, `<scope>.name` for one."""
    for name, value in sorted(plan.context.items()):
        cluster, _, own = name.rpartition(".")
        if cluster in ("", scope):
            yield own, value


def printed_settings(alerts: Sequence[Alert]) -> dict[str, str]:
    """Return the settings of all alerts; of equal names the one of the last alert."""
    return {name: value for alert in alerts for name, value in alert.settings.items()}


def _times(alerts: Sequence[Alert]) -> Iterator[tuple[str, Result]]:
    yield "count", sum(alert.count for alert in alerts if alert.key == alerts[0].key)
    dated = [alert for alert in alerts if alert.dated]
    if dated:
        first, last = min(a.starts_at for a in dated), max(a.ends_at or a.last_seen for a in dated)
        yield "first_seen", _stamp(first)
        yield "last_seen", _stamp(max(a.last_seen for a in dated))
        yield "duration_s", (last - first).total_seconds()
        yield "duration", render.human_ms((last - first).total_seconds() * 1000)


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _single(name: str, capture: Capture) -> Value:
    """Return the value that represents the capture of that name: the largest number, else the first text.

    Of a partition or offset it is the first, as of the topic: the largest ones of several lines together are a record that no
    line names, and a command that passes over it would leave out others.
    """
    if capture.max is None:
        return capture.values[0]
    of_record = name in ("partition", "offset") or name.endswith("_partition")
    return _whole(capture.first if of_record and capture.first is not None else capture.max)


def _whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number
