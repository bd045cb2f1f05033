"""Decide which texts of an incident its message shows; all others are for the thread. Pure, without blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate, islice

from msgspec import Struct
from msgspec.structs import replace

from connectors.slack.blocks import visible_lines
from connectors.slack.limits import MOST_SHOWN, cut
from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.notifications import DIGEST_HEADINGS, STORM_RULE
from engine.model.phrases import named
from engine.model.proof import distinct_events, is_stack_frame
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words

MOST_IN_TITLE, MOST_IN_WHERE, MOST_IN_CAUSE, MOST_IN_STEP, MOST_IN_COMMAND = 146, 140, 260, 160, 300
MOST_PROOF, MOST_IN_PROOF, LEAST_IN_PROOF = 2, 200, 40
MOST_MEMBERS, MOST_IN_MEMBER = 5, 150
MOST_IN_REMARK, MOST_IN_WHY = 60, 80
_FRAMING = 475  # characters of everything else: state, times, reason, id, names of parts

_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)[.!?][\"')\]]*\s+")


class SplitText(Struct, frozen=True):
    """A text divided between message and thread: `shown` is its first sentence, `rest` what follows. When that sentence is too
    long, `shown` is cut and `rest` is the whole text. Both have invisible characters made visible."""

    shown: str = ""
    rest: str = ""


class ProofLine(Struct, frozen=True):
    """A line of evidence that the message shows. `is_whole`: it is all of its event."""

    event_id: str
    text: str
    is_whole: bool


class Summary(Struct, frozen=True):
    """What the message of an incident shows: `step` and `command` are of the first step of the fix, `members` the first
    incidents of a digest; `room` are the characters that are left for the table of a storm."""

    title: SplitText
    where: SplitText
    cause: SplitText
    step: SplitText
    why: SplitText = SplitText()
    command: str = ""
    proof: tuple[ProofLine, ...] = ()
    explains: str = ""
    members: tuple[str, ...] = ()
    room: int = 0


def summary(incident: Incident, words: Words = ENGLISH) -> Summary:
    """Return what the message of `incident` shows; of one that is over only its title."""
    title, why = whole_or_cut(incident.title, MOST_IN_TITLE), whole_or_cut(words.sentence(incident.why), MOST_IN_WHY)
    where, first = visible(named(incident.labels)), incident.fix[0] if incident.fix else RenderedStep("")
    if is_over(incident):
        return Summary(
            title, SplitText(rest=where), SplitText(rest=visible(incident.cause)), SplitText(rest=visible(first.do)), why
        )
    chosen = Summary(
        title,
        whole_or_cut(where, MOST_IN_WHERE),
        opening(incident.cause, MOST_IN_CAUSE),
        opening(first.do, MOST_IN_STEP),
        why,
        _command(first),
        explains=_explains(incident, words),
    )
    shown = (chosen.title.shown, chosen.where.shown, chosen.cause.shown, chosen.step.shown, chosen.command)
    budget = MOST_SHOWN - _FRAMING - sum(map(len, shown))
    if incident.rule == STORM_RULE:
        return replace(chosen, room=budget)
    if incident.rule in DIGEST_HEADINGS:
        return replace(chosen, members=_members(incident.symptoms, budget))
    return replace(chosen, proof=_proof(incident.evidence, min(MOST_IN_PROOF, budget // MOST_PROOF)))


def is_over(incident: Incident) -> bool:
    """Return whether the message of `incident` is one line: nothing has to be done any more."""
    return incident.status not in ("open", "acknowledged")


def opening(text: str, limit: int) -> SplitText:
    """Divide `text` after its first sentence, of at most `limit` characters."""
    text = visible(text)
    end = _SENTENCE_END.search(text)
    sentence = text[: end.end()].rstrip() if end else text
    return (
        SplitText(cut(sentence, limit), text) if len(sentence) > limit else SplitText(sentence, text[len(sentence) :].strip())
    )


def whole_or_cut(text: str, limit: int) -> SplitText:
    """Return `text` as a whole, or cut to `limit` characters."""
    text = visible(text)
    return SplitText(text) if len(text) <= limit else SplitText(cut(text, limit), text)


def codes(step: RenderedStep) -> list[str]:
    """Return the commands, settings and files of a step."""
    files = [f"{path}:\n{content}" for path, content in step.file.items()]
    return [code for code in ("\n".join(step.assignments), *files, step.run) if code.strip()]


def member_line(symptom: Symptom) -> str:
    """Return a symptom, or a member of a digest, as one line."""
    return visible(f"{symptom.count:,} x {symptom.title or symptom.rule} {named(symptom.labels)}".strip())


def _command(step: RenderedStep) -> str:
    """Return the command of a step, else its first settings or file; nothing when it is too long: a command is never cut."""
    candidates = [step.run] if step.run.strip() else codes(step)[:1]
    return next((lines for code in candidates if len(lines := visible_lines(code)) <= MOST_IN_COMMAND), "")


def _explains(incident: Incident, words: Words) -> str:
    if not incident.symptoms or incident.rule in DIGEST_HEADINGS:
        return ""
    lines, kinds = sum(symptom.count for symptom in incident.symptoms), len({symptom.rule for symptom in incident.symptoms})
    number = words.counted("{number:,} line", "{number:,} lines", lines)
    return words("Explains {lines} of {kinds}", lines=number, kinds=words.counted("{number:,} kind", "{number:,} kinds", kinds))


def _members(symptoms: Iterable[Symptom], budget: int) -> tuple[str, ...]:
    lines = [cut(member_line(symptom), MOST_IN_MEMBER) for symptom in symptoms]
    sizes = accumulate(len(line) + 1 for line in lines)
    return tuple(line for line, size in zip(lines, sizes, strict=True) if size <= budget)[:MOST_MEMBERS]


def _proof(events: Iterable[Evidence], limit: int) -> tuple[ProofLine, ...]:
    """Return the first lines of the first events, without stack frames and repetitions; none when there is room for too few
    characters."""
    if limit < LEAST_IN_PROOF:
        return ()
    lines = (line for event, is_new in distinct_events(events) if is_new for line in _event_lines(event, limit))
    return tuple(islice(lines, MOST_PROOF))


def _event_lines(event: Evidence, limit: int) -> list[ProofLine]:
    lines = [line for line in event.text.splitlines() if line.strip()]
    shown_lines = [visible(line) for line in lines if not is_stack_frame(line)] or [visible(event.text)]
    is_whole = len(lines) <= 1 and len(shown_lines[0]) <= limit
    return [ProofLine(event.event_id, cut(line, limit), is_whole) for line in shown_lines]
