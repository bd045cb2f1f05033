"""The history of one incident: everything that its page shows, read from the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from engine.acting import as_shown, handling_of
from engine.model.acts import ActKind
from engine.model.considered import ConsideredRule
from engine.model.incidents import Incident
from engine.model.links import LineLinks, Link, LinkTargets
from engine.model.notifications import ReceiverStatus
from engine.model.past import NO_PAST, Past
from engine.model.proof import Neighbours
from engine.model.prose import translated
from engine.model.routes import Silence
from engine.model.words import Words
from engine.web.timeline import Change, timeline

if TYPE_CHECKING:  # a report of a scan has no store
    from engine.store import Store


class History(Struct, frozen=True):
    """The last revision of an incident, its changes (oldest first), the status of its receivers and its links. `silences`:
    those that were added by acts on it and have not ended. `past`: the earlier incidents of its rule;
    `considered`: the rules that are no part of it, though they matched lines about its entity in its time."""

    incident: Incident
    changes: tuple[Change, ...]
    standings: tuple[ReceiverStatus, ...] = ()
    links: tuple[Link, ...] = ()
    lines: Mapping[str, LineLinks] = field(default_factory=dict)  # what leads on from a line of evidence, by event id
    query: str = ""  # what narrows the logs in Kibana to the incident
    silences: tuple[Silence, ...] = ()
    past: Past = NO_PAST
    considered: tuple[ConsideredRule, ...] = ()
    around: Mapping[str, Neighbours] = field(default_factory=dict)  # of lines of evidence, by event id


def history_of(store: Store, id: str, links: LinkTargets, at: datetime) -> History | None:
    """Return the history of the incident `id` with the silences of the time `at`; None when there is no such incident. Raises
    StoreError."""
    revisions, outbox, acts = store.revisions(id), store.outbox(), store.acts().of(id)
    if not revisions:
        return None
    changes = timeline(revisions, outbox.attempts(id), acts)
    now = as_shown(revisions[-1], handling_of(acts))
    added = {act.silence for act in acts if act.kind is ActKind.SILENCE}
    silences = tuple(silence for silence in outbox.silences(at) if silence.id in added) if added else ()
    return History(
        now,
        changes,
        standings=tuple(outbox.standings(id)),
        links=links.of(now),
        lines=links.of_lines(now),
        query=links.query(now),
        silences=silences,
        past=store.past_of(now),
        considered=tuple(store.considered_of(now)),
    )


def in_language(history: History, words: Words) -> History:
    """Return a history in the language of `words`: the texts of its incidents where their rules have them in it, and what
    tocsin says of what happened. What people wrote stays."""
    if not words.texts:
        return history
    incident = history.incident
    own = words.beside(incident.translations.get(words.language, {}))
    course = tuple(replace(each, title=own.texts.get(each.title, each.title)) for each in incident.course)
    considered = tuple(replace(rule, title=rule.translations.get(words.language, rule.title)) for rule in history.considered)
    past = tuple(replace(each, incident=translated(each.incident, words)) for each in history.past.incidents)
    return replace(
        history,
        incident=replace(translated(incident, words), course=course, why=own.sentence(incident.why)),
        changes=tuple(replace(change, sentence=own.sentence(change.sentence)) for change in history.changes),
        past=replace(history.past, incidents=past),
        considered=considered,
    )
