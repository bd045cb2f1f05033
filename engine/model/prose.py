"""The prose of an incident: its texts that differ between languages, and the incident in another language. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.notifications import Notification
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
        incident=_translated(notification.incident, words),
        news=of_incident.sentence(notification.news),
        changes=tuple(replace(change, incident=_translated(change.incident, words)) for change in notification.changes),
        members=tuple(_translated(member, words) for member in notification.members),
        words=words,
    )


def _translated(incident: Incident, words: Words) -> Incident:
    of_incident = words.beside(incident.translations.get(words.language, {}))

    def in_language(text: str) -> str:  # what tocsin itself put around the text of a rule is recognised in the translation
        return words.sentence(of_incident.sentence(text))

    return with_prose(incident, in_language)


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
