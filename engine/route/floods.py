"""Floods: too many incidents at once for one receiver. Choose those for a digest, and make its summary incident."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from engine.model.incidents import Incident, Symptom
from engine.model.notifications import FLOOD_RULE, STORM_PREFIX, Delivery, Reason
from engine.model.phrases import named
from engine.model.proofs import PROOF_RULE
from engine.model.rules import SEVERITIES
from engine.model.words import worded
from engine.route.summary import number_of_incidents, summary_incident

MINOR = frozenset(("info", "low", "medium"))
SINGLES = 20  # the largest number of minor incidents with a message of their own within SINGLES_S, for each receiver
SINGLES_S = 60.0
LONGEST_QUEUE = 100  # the largest number of incidents, of any severity, that wait for a message of their own
_NAMED = 3  # incidents of a rule that are named in a digest

Urgency = tuple[int, float, str]


class Candidate(Struct, frozen=True):
    """An outbox entry that is due, and its incident."""

    entry: Delivery
    incident: Incident


def urgency(candidate: Candidate) -> Urgency:
    """Return the sort key for the order of sending: the most severe first, then the longest due."""
    entry = candidate.entry
    return -SEVERITIES.index(candidate.incident.severity), entry.due_at.timestamp(), entry.incident


def is_minor(incident: Incident) -> bool:
    """Return whether the severity of an incident is low enough to go into a digest first."""
    return incident.severity in MINOR


def overflow(due: Sequence[Candidate], recent: int) -> list[Candidate]:
    """Return those of one receiver's `due` candidates that go into a digest, most urgent first.

    These are all minor ones, if with the `recent` messages of the last SINGLES_S they are more than SINGLES, and the least
    urgent of the others beyond LONGEST_QUEUE. An incident that has, or may have, a message of its own is never chosen, as
    that message must be updated.
    """
    foldable = sorted((candidate for candidate in due if _is_foldable(candidate)), key=urgency)
    minor = [candidate for candidate in foldable if is_minor(candidate.incident)]
    digested = minor if len(minor) + recent > SINGLES else []
    remaining = [candidate for candidate in foldable if not (digested and is_minor(candidate.incident))]
    return [*remaining[LONGEST_QUEUE:], *digested]


def flood_digest(id: str, members: Sequence[Incident]) -> Incident:
    """Return the summary incident of `members` (at least one): one symptom for each rule and severity, the worst first."""
    incidents = number_of_incidents(len(members))
    still_open = sum(member.status == "open" for member in members)
    return summary_incident(
        members,
        id=id,
        rule=FLOOD_RULE,
        title=worded("{incidents} at once: {number:,} still open", incidents=incidents, number=still_open),
        cause=worded(
            "More incidents came at once than can be sent one by one. They are sent together, so as not to hide severe ones."
        ),
        symptoms=list(_symptoms(members)),
    )


def _is_foldable(candidate: Candidate) -> bool:
    entry = candidate.entry
    return (
        candidate.incident.rule != PROOF_RULE
        and not entry.marks
        and entry.unsure_since is None
        and entry.reason not in (Reason.BACKFILL, Reason.DIGEST)
        and not entry.incident.startswith(STORM_PREFIX)
    )


def _symptoms(members: Sequence[Incident]) -> list[Symptom]:
    counts = Counter((member.severity, member.rule) for member in members)
    ordered = sorted(counts, key=lambda kind: (-SEVERITIES.index(kind[0]), -counts[kind], kind[1]))
    examples: dict[tuple[str, str], list[Incident]] = {}
    for member in members:
        examples.setdefault((member.severity, member.rule), []).append(member)
    return [_symptom(examples[kind]) for kind in ordered]


def _symptom(incidents: Sequence[Incident]) -> Symptom:
    first = incidents[0]
    labels = "; ".join(text for incident in incidents[:_NAMED] if (text := named(incident.labels)))
    title = _symptom_title(first, labels, len(incidents))
    times = [incident.first_seen for incident in incidents if incident.first_seen is not None]
    return Symptom(first.rule, title, len(incidents), {}, min(times, default=None))


def _symptom_title(first: Incident, labels: str, number: int) -> str:
    """Return the title of the symptom of `number` incidents with these labels, of which `first` is one."""
    values = {"severity": first.severity, "title": first.title}
    if number == 1:
        return (
            worded("{severity}: {title} ({labels})", **values, labels=labels)
            if labels
            else worded("{severity}: {title}", **values)
        )
    if not labels:
        return worded("{severity}: such as {title}", **values)
    if number <= _NAMED:
        return worded("{severity}: such as {title} ({labels})", **values, labels=labels)
    more = number - _NAMED
    return worded("{severity}: such as {title} ({labels} and {number:,} more)", **values, labels=labels, number=more)
