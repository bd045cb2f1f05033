"""The history of one incident: everything that its page shows, read from the store."""

from __future__ import annotations

from msgspec import Struct

from engine.model.incidents import Incident
from engine.model.links import Link, LinkTargets
from engine.model.notifications import ReceiverStatus
from engine.store import Store
from engine.web.timeline import Change, timeline


class History(Struct, frozen=True):
    """The last revision of an incident, its changes (oldest first), the status of its receivers and its links."""

    incident: Incident
    changes: tuple[Change, ...]
    standings: tuple[ReceiverStatus, ...] = ()
    links: tuple[Link, ...] = ()


def history_of(store: Store, id: str, links: LinkTargets) -> History | None:
    """Return the history of the incident `id`; None when there is no such incident. Raises StoreError."""
    revisions, outbox = store.revisions(id), store.outbox()
    if not revisions:
        return None
    changes = timeline(revisions, outbox.attempts(id))
    return History(revisions[-1], changes, tuple(outbox.standings(id)), links.of(revisions[-1]))
