"""An incident as named passages of text and code: what receivers without a form of their own show. Pure.

All text is safe to display: what a reader cannot see is visible, and a passage has no line ends except in its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from engine.model.incidents import Evidence, Incident, RenderedStep
from engine.model.notifications import DIGEST_HEADINGS, Notification
from engine.model.phrases import moment, named
from engine.model.proof import distinct_events
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked

MOST_PROOF, MOST_EVENT, MOST_MEMBERS = 5, 2_000, 40


# what headlines begin with: severities of what is open, and all other states
VALUE_WORDS = marked(  # of severities and states, within sentences
    "critical", "high", "medium", "low", "info", "open", "acknowledged", "pending", "resolved", "merged", "retracted"
)
SEVERITY_WORDS = marked("CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO")
HEADINGS = marked(
    "Changed", "When", "Where", "Cause", "Impact", "Verify", "Proof", "Explains", "Or", "Check", "See", "More", "Fix {number}"
)
PLACE_WORDS = marked("client", "topic", "broker", "worker", "connector", "os", "controller", "cluster")  # of steps
STATE_WORDS = marked("Acknowledged", "Pending", "Resolved", "Merged", "Retracted")


class Passage(Struct, frozen=True):
    """A part of an outline: `code` stands below `text`, line by line. Text or code may be empty. `name` is the same in all
    languages, `heading` is for people."""

    name: str
    text: str = ""
    code: str = ""
    heading: str = ""


def headline(incident: Incident, words: Words = ENGLISH) -> str:
    """Return the state and the title, as `CRITICAL: Broker 1 went silent` or `Resolved: Broker 1 went silent`."""
    state = incident.severity.upper() if incident.status == "open" else incident.status.capitalize()
    return f"{words(state)}: {visible(incident.title)}"


def outline(notification: Notification) -> tuple[Passage, ...]:
    """Return the passages of a notification in the order in which a reader needs them; parts without content are left out.

    Evidence is at most MOST_PROOF distinct events of MOST_EVENT characters each, a list of symptoms at most MOST_MEMBERS lines.
    """
    incident, words = notification.incident, notification.words
    passages = (
        Passage("Changed", visible(notification.news)),
        Passage("When", _when(incident, words)),
        Passage("Where", visible(named(incident.labels))),
        Passage("Cause", visible(incident.cause)),
        Passage("Impact", visible(incident.impact)),
        *(Passage(f"Fix {number}", *_step(step, words)) for number, step in enumerate(incident.fix, 1)),
        Passage("Verify", code=_code(incident.verify)),
        *_proof(incident, words),
        Passage(DIGEST_HEADINGS.get(incident.rule, "Explains"), code=_symptoms(incident, words)),
        Passage("Or", visible(", ".join(incident.also_possible))),
        *(Passage("Check", visible(check)) for check in incident.next_checks),
        *(Passage("See", visible(reference)) for reference in incident.references),
    )
    return tuple(_headed(passage, words) for passage in passages if passage.text or passage.code)


def _headed(passage: Passage, words: Words) -> Passage:
    name, _, number = passage.name.partition(" ")
    heading = words("Fix {number}", number=number) if name == "Fix" else words(passage.name)
    return replace(passage, heading=heading)


def fitting(passages: Iterable[Passage], budget: int, words: Words = ENGLISH) -> tuple[Passage, ...]:
    """Return the first passages that have at most `budget` characters together, and one that counts those left out, if any."""
    chosen: list[Passage] = []
    everything = tuple(passages)
    for passage in everything:
        budget -= len(passage.name) + len(passage.text) + len(passage.code)
        if budget < 0:
            more = len(everything) - len(chosen)
            text = words.counted("{number:,} part did not fit in here", "{number:,} parts did not fit in here", more)
            return (*chosen, _headed(Passage("More", text), words))
        chosen.append(passage)
    return everything


def plain(passages: Iterable[Passage]) -> str:
    """Return passages as plain text: code is indented by two blanks."""
    parts = []
    for passage in passages:
        code = [f"  {line}" for line in passage.code.split("\n")] if passage.code else []
        parts.append("\n".join([f"{passage.heading or passage.name}: {passage.text}".rstrip(" "), *code]))
    return "\n\n".join(parts)


def _when(incident: Incident, words: Words) -> str:
    if incident.first_seen is None:
        return ""
    parts = [words("since {time}", time=moment(incident.first_seen))]
    if incident.resolved_at is not None:
        span = words.span(incident.resolved_at - incident.first_seen)
        parts.append(words("until {time} ({span})", time=moment(incident.resolved_at), span=span))
    elif incident.last_seen is not None and incident.last_seen > incident.first_seen:
        parts.append(words("last seen {time}", time=moment(incident.last_seen)))
    if incident.count > 1:
        parts.append(words("{number:,} times", number=incident.count))
    if incident.why:
        parts.append(visible(words.sentence(incident.why)))
    return ", ".join(parts)


def remark(step: RenderedStep, words: Words) -> str:
    """Return where a step is done, and whether it changes anything: ` (topic, changes state)`, or nothing."""
    parts = (words(step.where) if step.where else "", words("changes state") if step.changes_state else "")
    return f" ({visible(', '.join(filter(None, parts)))})" if any(parts) else ""


def _step(step: RenderedStep, words: Words) -> tuple[str, str]:
    files = [f"{path}:\n{content}" for path, content in step.file.items()]
    codes = [code for code in ("\n".join(step.assignments), *files, step.run) if code.strip()]
    return f"{visible(step.do)}{remark(step, words)}", _code("\n".join(codes))


def _proof(incident: Incident, words: Words) -> Iterator[Passage]:
    events = [event for event, is_new in distinct_events(incident.evidence) if is_new]
    for event in events[:MOST_PROOF]:
        yield Passage("Proof", visible(event.place), _event(event))
    if more := len(incident.evidence) - min(len(events), MOST_PROOF):
        yield Passage(
            "Proof",
            words.counted(
                "and {number:,} more line on the incident's page", "and {number:,} more lines on the incident's page", more
            ),
        )


def _event(event: Evidence) -> str:
    lines = _code(event.text)
    return lines if len(lines) <= MOST_EVENT else f"{lines[: MOST_EVENT - 1]}…"


def _symptoms(incident: Incident, words: Words) -> str:
    lines = [f"{x.count:,} x {x.title or x.rule} {named(x.labels)}".strip() for x in incident.symptoms]
    more = [words("and {number:,} more", number=len(lines) - MOST_MEMBERS)] if len(lines) > MOST_MEMBERS else []
    return _code("\n".join([*lines[:MOST_MEMBERS], *more]))


def _code(text: str) -> str:
    """Return `text` with what cannot be seen made visible, except its line ends. A command is never cut."""
    return "\n".join(visible(line) for line in text.rstrip().split("\n"))
