"""The report of a scan on a terminal: a summary, the incidents, then pending, minor, unknown and not evaluated items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.text import Text

from engine.cli.report import MARGIN, entity, render_incident, shortened, wrapped
from engine.cli.triage import Stats, Triage
from engine.model.incidents import Incident, NotEvaluated
from engine.model.phrases import moment
from engine.model.prose import translated
from engine.model.rules import SEVERITIES
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words

MOST_ROWS = 4  # of an item
HANG = "  "  # before the further rows of an item
MOST_ITEMS = 5  # of pending, minor, unknown, blind and notes; --format json has them all
MOST_ALIKE = 5  # incidents of one rule with the same advice that are printed in full; the others take a line each
MOST_LINES = 40  # of such lines
MOST_IN_FULL = 100  # incidents that are printed in full
MOST_MINOR = 3  # minor incidents printed in full when there is nothing worse: whoever scans a few lines asks what they mean

_NUMBER = re.compile(r"(\d+)")


def render_triage(triage: Triage, width: int = 80) -> Text:
    """Return the report of a scan, ending in a line end; print it like that of `render_incident`."""
    page = Text().append(f"{headline(triage)}\n", "bold")
    in_full = minor_in_full(triage)
    minor = triage.minor[len(in_full) :]
    incidents, alike = _separate_alike(triage.incidents)
    more, incidents = incidents[MOST_IN_FULL:], incidents[:MOST_IN_FULL]
    for incident in (*incidents, *in_full):
        page.append("\n").append(render_incident(incident, width))
    gaps = triage.coverage.gaps if incidents else ()  # else they are in the first line
    if alike or more or gaps or triage.pending or minor or triage.unknown or triage.blind or triage.quarantined or triage.notes:
        page.append("\n")
    _items(page, "More", [_alike(i) for i in more], width, MOST_LINES)
    _items(page, "Alike", [_alike(i) for i in sorted(alike, key=_natural_order)], width, MOST_LINES)
    _items(page, "Unjudged", gaps, width)
    _items(page, "Pending", [_pending(i) for i in triage.pending], width)
    _items(page, "Minor", [_minor(i) for i in minor], width)
    _items(page, "Unknown", [f"{u.count:,} x {u.level} {u.template}" for u in triage.unknown], width)
    _draft(page, triage)
    _items(page, "Blind", [_blind(b) for b in triage.blind], width)
    _items(page, "Aside", [letter.sentence for letter in triage.quarantined], width)
    _items(page, "Note", list(triage.notes), width)
    return page


def headline(triage: Triage, words: Words = ENGLISH) -> str:
    """Return what a scan found, and how much it read, in two sentences."""
    return f"{_verdict(triage, words)} {_read(triage.stats, words)}"


def minor_in_full(triage: Triage) -> Sequence[Incident]:
    """Return what is minor and printed like an incident all the same: the first few, where there is nothing worse."""
    return triage.minor[:MOST_MINOR] if _only_minor(triage) else ()


def remarks(triage: Triage, words: Words = ENGLISH) -> list[tuple[str, list[str]]]:
    """Return what a scan found besides incidents, as lists of sentences with their headings; also empty ones."""
    return [
        (words("Not yet confirmed"), [_pending(translated(i, words), words) for i in triage.pending]),
        (words("Minor"), [_minor(translated(i, words), words) for i in triage.minor]),
        (words("Errors that no rule knows"), [f"{u.count:,} x {u.level} {u.template}" for u in triage.unknown]),
        (words("What cannot be judged"), [f"{b.what}: {b.why}" for b in triage.blind]),
        (words("Input that was set aside"), [letter.sentence for letter in triage.quarantined]),
        (words("Notes"), list(triage.notes)),
    ]


def _separate_alike(incidents: Sequence[Incident]) -> tuple[Sequence[Incident], Sequence[Incident]]:
    """Return the incidents to print in full, and those beyond MOST_ALIKE of the same rule with the same advice."""
    counts: Counter[tuple[str, ...]] = Counter()
    distinct: list[Incident] = []
    alike: list[Incident] = []
    for incident in incidents:
        key = (incident.rule, *(_without(step.do, incident.labels.values()) for step in incident.fix))
        counts[key] += 1
        (distinct if counts[key] <= MOST_ALIKE else alike).append(incident)
    return distinct, alike


def _without(text: str, names: Iterable[str]) -> str:
    for name in names:
        text = text.replace(name, "") if name else text
    return text


def _only_minor(triage: Triage) -> bool:
    return bool(triage.minor) and not (triage.incidents or triage.pending)


def _verdict(triage: Triage, words: Words) -> str:
    """Return the first sentences: incidents, or what was judged; an all-clear only when nothing was left out."""
    incidents, coverage = triage.incidents, triage.coverage
    if incidents:
        counts = Counter(i.severity for i in incidents)
        each = (
            words("{number} {severity}", number=counts[severity], severity=words(severity))
            for severity in reversed(SEVERITIES)
            if counts[severity]
        )
        severities = ", ".join(each)
        return words.counted(
            "{number:,} incident: {severities}.", "{number:,} incidents: {severities}.", len(incidents), severities=severities
        )
    gaps = words("Not judged: {text}.", text="; ".join(coverage.gaps)) if coverage.gaps else ""
    return " ".join(filter(None, (gaps, _nothing(triage, words))))


def _nothing(triage: Triage, words: Words) -> str:
    """Return that there is no incident, as far as that was judged; empty when nothing was."""
    coverage = triage.coverage
    if _only_minor(triage):
        return words("No incident; {number:,} minor: no trouble unless there is more of it.", number=len(triage.minor))
    if coverage.gaps:
        return words("Otherwise nothing found, in {text}.", text=coverage.extent) if coverage.events else ""
    return words("Nothing found in {text}.", text=coverage.extent) if coverage.events else words("Nothing found.")


def _read(stats: Stats, words: Words) -> str:
    return words.counted(
        "{number:,} line read in {seconds:.1f} s.",
        "{number:,} lines read in {seconds:.1f} s.",
        stats.lines,
        seconds=stats.seconds,
    )


def _pending(incident: Incident, words: Words = ENGLISH) -> str:
    return f"{incident.title} [{incident.rule}] {entity(incident.labels)}{_since(incident, words)}"


def _alike(incident: Incident) -> str:
    return f"{incident.severity} {incident.title}{_since(incident)} {entity(incident.labels)}"


def _natural_order(incident: Incident) -> tuple[str, Sequence[str | int]]:
    """Return a sort key by rule and title in which orders-2 comes before orders-10."""
    return incident.rule, [int(part) if part.isdecimal() else part for part in _NUMBER.split(incident.title)]


def _since(incident: Incident, words: Words = ENGLISH) -> str:
    return f", {words('since {time}', time=moment(incident.first_seen))}" if incident.first_seen else ""


def _minor(incident: Incident, words: Words = ENGLISH) -> str:
    what = f"{incident.count:,} x {incident.title} [{incident.rule}]"
    return words("{text}, no trouble unless there is more of it", text=what)


def _blind(blind: NotEvaluated) -> str:
    scope = "" if blind.scope == "default" else f"{blind.scope}: "
    return f"{scope}{blind.what}: {blind.why}"


def _draft(page: Text, triage: Triage) -> None:
    """Append the command that drafts a rule from the first unknown lines, on one line of any width, so that it can be
    copied."""
    if triage.unknown and (command := triage.unknown[0].draft):
        page.append(f"{'Rule':<{MARGIN}}", "dim").append(f"{visible(command)}\n", "green")


def _items(page: Text, name: str, items: Sequence[str], width: int, limit: int = MOST_ITEMS) -> None:
    """Append items in full, wrapped; of a very long one its beginning and its end."""
    for number, item in enumerate(items[:limit]):
        for line_number, line in enumerate(
            wrapped(shortened(" ".join(item.split()), MOST_ROWS * width), width - MARGIN - len(HANG))
        ):
            page.append(f"{name if number == line_number == 0 else '':<{MARGIN}}", "dim")
            page.append(f"{HANG if line_number else ''}{line}\n")
    if len(items) > limit:
        page.append(f"{'':<{MARGIN}}and {len(items) - limit} more; --format json lists them all\n", "dim")
