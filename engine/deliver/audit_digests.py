"""Plan the digests of risks: at most one a day for each cluster that is asked, to the receiver that is configured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zlib import crc32

from msgspec.structs import replace

from engine.deliver.book import Book
from engine.deliver.digests import Digest, updated_entry
from engine.deliver.planning import AuditNotice
from engine.model.incidents import DAWN, Incident, Symptom
from engine.model.notifications import AUDIT_RULE, Delivery, DeliveryState, Reason
from engine.model.phrases import moment
from engine.model.words import worded
from engine.risks.judging import ClusterAudit
from engine.risks.summary import shown_risks
from engine.store import Store
from engine.store.outbox import Pair

DAY = timedelta(days=1)
AGAIN = timedelta(minutes=10)  # when a cluster is looked at again that nobody has asked lately
MOST = 100  # risks in a digest; the page has all
PREFIX = "audit-"  # of the ids of these digests, before the name of the cluster


class AuditDigests:
    """The digests of one notifier. Used by one thread.

    A digest is sent when the risks of a cluster are others than in the last one, also when none is left.
    """

    def __init__(self, store: Store, book: Book) -> None:
        self._store, self._book = store, book
        self._notice: AuditNotice | None = None
        self._next_at = DAWN
        self._planned: dict[Pair, Digest] = {}

    def restart_waits(self) -> None:
        """Look again, after the clock was corrected."""
        self._next_at = DAWN

    def look(self, notice: AuditNotice | None, now: datetime) -> Sequence[str]:
        """Judge the clusters if it is time; return the receivers whose digests have changed. Raises StoreError."""
        if notice != self._notice:
            self._notice, self._next_at = notice, DAWN
        if now < self._next_at or (notice is None and not self._planned):
            return ()
        receivers = {receiver for receiver, _ in self._planned}
        self._planned.clear()
        if notice is None:
            return sorted(receivers)
        since, is_complete = begin_of_day(notice.minute, now), True
        for cluster, pictures in self._store.recent_pictures(now).items():
            if pictures.last.is_too_old(now):
                is_complete = False
            elif (digest := self._digest(notice, notice.terms.judged(cluster, pictures), since, now)) is not None:
                self._planned[notice.receiver, digest.incident.id] = digest
        self._next_at = since + DAY if is_complete else min(since + DAY, now + AGAIN)
        return sorted({*receivers, notice.receiver})

    def planned(self, receiver: str) -> Iterator[tuple[Pair, Digest]]:
        """Yield the digests that `receiver` is to be sent and was not yet, each with its entry as the outbox has it."""
        for pair, digest in self._planned.items():
            log, entry = self._book.log(pair), self._book.entry(pair)
            if pair[0] == receiver and (log is None or log.at < digest.entry.known_at):
                is_begun = entry is not None and entry.known_at >= digest.entry.known_at
                yield pair, replace(digest, entry=entry) if is_begun else digest

    def _digest(self, notice: AuditNotice, audit: ClusterAudit, since: datetime, now: datetime) -> Digest | None:
        incident = audit_incident(audit)
        pair = (notice.receiver, incident.id)
        log, entry = self._book.log(pair), self._book.entry(pair)
        if (log is None and not audit.risks) or (log is not None and (log.at >= since or log.revision == incident.revision)):
            return None
        fresh = Delivery(*pair, incident.revision, Reason.DIGEST, now, now)
        is_old = entry is None or (entry.state is DeliveryState.REJECTED and entry.known_at < since)  # refused on another day
        return Digest(incident, fresh if is_old else replace(updated_entry(fresh, entry), known_at=now), (), ())


def begin_of_day(minute: int, now: datetime) -> datetime:
    """Return the last time that was `minute` of a day in UTC, at `now` or before."""
    at = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(minutes=minute)
    return at if at <= now else at - DAY


def audit_incident(audit: ClusterAudit) -> Incident:
    """Return the summary incident of the risks of a cluster, one symptom each, the worst first. Its revision is a fingerprint
    of which they are; it is over when there are none."""
    cluster, number = audit.cluster, len(audit.risks)
    identity = "\n".join(sorted(f"{risk.check} {risk.kind} {risk.subject}" for risk in audit.risks))
    titles = {
        0: worded("No risk is left in {cluster}", cluster=cluster.name),
        1: worded("1 risk in {cluster}", cluster=cluster.name),
    }
    symptoms = [
        Symptom(risk.check, worded("{severity}: {title}", severity=risk.severity, title=risk.what), 1, {}, None)
        for risk in shown_risks(audit)
    ]
    return Incident(
        id=f"{PREFIX}{cluster.name}",
        key=(cluster.name, AUDIT_RULE, ()),
        revision=crc32(identity.encode()) >> 1,  # 31 bits: databases take no more as an integer
        rule=AUDIT_RULE,
        title=titles.get(number) or worded("{number:,} risks in {cluster}", number=number, cluster=cluster.name),
        severity="info",
        status="open" if number else "resolved",
        component="any",
        labels={"cluster": cluster.name},
        first_seen=cluster.at,
        last_seen=cluster.at,
        resolved_at=None if number else cluster.at,
        count=max(1, number),
        cause=worded(
            "What works now and may break, by what the cluster said until {time}. The page of risks has the reasons and the"
            " commands.",
            time=moment(cluster.at) if cluster.at is not None else "",
        ),
        impact="",
        symptoms=tuple(symptoms[:MOST]),
    )
