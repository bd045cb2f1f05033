"""The prose of an incident: its texts that differ between languages, and the incident in another language. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.notifications import DIGEST_HEADINGS, TEST_RULE, Notification
from engine.model.words import Words


def prose_of(incident: Incident) -> tuple[str, ...]:
    """Return the texts of a rule in an incident: title, cause, impact, the steps, the checks, and the titles of symptoms."""
    steps = (step.do for step in incident.fix)
    symptoms = (symptom.title for symptom in incident.symptoms)
    return incident.title, incident.cause, incident.impact, *steps, *incident.next_checks, *symptoms


def localised(notification: Notification, words: Words) -> Notification:
    """Return a notification in the language of `words`: its news, and the prose of its incidents where their rules have it in
    that language. `status` and `why` stay as they are stored; a receiver looks them up in the notification's `words`."""
    if not words.texts:
        return notification
    of_incident = words.beside(notification.incident.translations.get(words.language, {}))
    return replace(
        notification,
        incident=translated(notification.incident, words),
        news=of_incident.sentence(notification.news),
        changes=tuple(replace(change, incident=translated(change.incident, words)) for change in notification.changes),
        members=tuple(translated(member, words) for member in notification.members),
        words=words,
    )


def translated(incident: Incident, words: Words) -> Incident:
    """Return `incident` with its prose in the language of `words`, where its rule has it in that language."""
    own = incident.translations.get(words.language, {})
    if incident.rule in DIGEST_HEADINGS or incident.rule == TEST_RULE:  # tocsin's own sentences, around titles of incidents
        return with_prose(incident, words.beside(own).sentence)
    return with_prose(incident, lambda text: words.framed(own[text]) if text in own else text)


def with_prose(incident: Incident, change: Callable[[str], str]) -> Incident:
    """Return `incident` with `change` applied to each text of prose_of."""
    return replace(
        incident,
        title=change(incident.title),
        cause=change(incident.cause),
        impact=change(incident.impact),
        fix=tuple(replace(step, do=change(step.do)) for step in incident.fix),
        next_checks=tuple(map(change, incident.next_checks)),
        symptoms=tuple(replace(symptom, title=change(symptom.title)) for symptom in incident.symptoms),
    )
