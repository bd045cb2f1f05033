"""Too many incidents at once for one receiver: which are told together, and the incident that stands for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from engine.model.incidents import Incident, Symptom
from engine.model.notifications import FLOOD_RULE, Delivery, Reason
from engine.model.phrases import named
from engine.model.rules import SEVERITIES
from engine.route.standing_in import standing_for

MINOR = frozenset(("info", "low", "medium"))
SINGLES = 20  # minor incidents that a receiver is told of one by one within SINGLES_S
SINGLES_S = 60.0
LONGEST_QUEUE = 100  # of any severity: what may wait for a receiver to be told one by one
_NAMED = 3  # incidents of a rule that a digest names

Urgency = tuple[int, float, str]


class Candidate(Struct, frozen=True):
    """An entry that is due, and the incident that it tells of."""

    entry: Delivery
    incident: Incident


def urgency(candidate: Candidate) -> Urgency:
    """Return what sorts candidates into the order in which they are told: the most severe first, then the longest due."""
    entry = candidate.entry
    return -SEVERITIES.index(candidate.incident.severity), entry.due_at.timestamp(), entry.incident


def is_minor(incident: Incident) -> bool:
    """Say whether an incident is of those that are told together first."""
    return incident.severity in MINOR


def overflow(due: Sequence[Candidate], recent: int) -> list[Candidate]:
    """Return those of one receiver's `due` candidates that are to be told in a digest, most urgent first.

    All minor ones, when with the `recent` ones told in the last SINGLES_S they are more than SINGLES; and what is least urgent
    of the others beyond LONGEST_QUEUE. Never what has a message that must be kept true, or may have one.
    """
    foldable = sorted((each for each in due if _is_foldable(each.entry)), key=urgency)
    minor = [each for each in foldable if is_minor(each.incident)]
    folded = minor if len(minor) + recent > SINGLES else []
    staying = [each for each in foldable if not (folded and is_minor(each.incident))]
    return [*staying[LONGEST_QUEUE:], *folded]


def flood_digest(id: str, members: Sequence[Incident]) -> Incident:
    """Return the incident that stands for `members` (at least one): a symptom for each rule and severity, the worst first."""
    number = "1 incident" if len(members) == 1 else f"{len(members):,} incidents"
    still_open = sum(member.status == "open" for member in members)
    return standing_for(
        members,
        id=id,
        rule=FLOOD_RULE,
        title=f"{number} at once: {still_open:,} still open",
        cause="More came at once than can be told one by one, so they are told together and hide nothing that is more severe.",
        symptoms=list(_symptoms(members)),
    )


def _is_foldable(entry: Delivery) -> bool:
    return not entry.marks and entry.unsure_since is None and entry.reason not in (Reason.BACKFILL, Reason.DIGEST)


def _symptoms(members: Sequence[Incident]) -> list[Symptom]:
    counts = Counter((each.severity, each.rule) for each in members)
    ordered = sorted(counts, key=lambda kind: (-SEVERITIES.index(kind[0]), -counts[kind], kind[1]))
    examples: dict[tuple[str, str], list[Incident]] = {}
    for each in members:
        examples.setdefault((each.severity, each.rule), []).append(each)
    return [_symptom(examples[kind]) for kind in ordered]


def _symptom(alike: Sequence[Incident]) -> Symptom:
    first = alike[0]
    labels = "; ".join(text for each in alike[:_NAMED] if (text := named(each.labels)))
    more = f" and {len(alike) - _NAMED:,} more" if len(alike) > _NAMED else ""
    title = f"{first.severity}: {first.title}" if len(alike) == 1 else f"{first.severity}: such as {first.title}"
    where = f" ({labels}{more})" if labels else ""
    times = [each.first_seen for each in alike if each.first_seen is not None]
    return Symptom(first.rule, f"{title}{where}", len(alike), {}, min(times, default=None))
