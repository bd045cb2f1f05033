"""The details of an incident, which are in the thread of its message: all that the message does not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from connectors.slack.blocks import addresses, code_blocks, named_prose, paragraph, visible_lines, word
from connectors.slack.limits import SlackBlock, paged
from connectors.slack.message import Message, facts
from connectors.slack.summary import MOST_IN_REMARK, Summary, codes, is_over, member_line, summary
from engine.model.incidents import Evidence, Incident
from engine.model.links import LineLinks
from engine.model.notifications import DIGEST_HEADINGS
from engine.model.outlines import remark
from engine.model.proof import distinct_events
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words

MOST_PAGES = 4  # messages; more is for the incident's page


def details(incident: Incident, lines: Mapping[str, LineLinks] | None = None, words: Words = ENGLISH) -> list[Message]:
    """Return the messages for the thread, with `lines` by event id beside the evidence; none when the message shows everything,
    and for an incident that was merged.

    Events that equal an earlier one except for numbers are shown by their first line.
    """
    if incident.status == "merged":
        return []
    pages, omissions = paged(_parts(incident, summary(incident, words), lines or {}, words), MOST_PAGES)
    if omissions:
        pages[-1].append(
            paragraph(
                [word(words("{number:,} more parts did not fit in here; the incident's page has them.", number=omissions))]
            )
        )
    return [Message(words("Details") if number == 0 else words("More details"), page) for number, page in enumerate(pages)]


def _parts(incident: Incident, shown: Summary, lines: Mapping[str, LineLinks], words: Words) -> Iterator[SlackBlock]:
    yield from named_prose(words("Title"), shown.title.rest)
    yield from named_prose(words("Where"), shown.where.rest)
    if is_over(incident):
        yield paragraph([word(f"{words('When')}  ", bold=True), *facts(incident, words=words)])
    yield from named_prose(words("Why"), shown.why.rest)
    yield from named_prose(words("Cause"), shown.cause.rest)
    yield from named_prose(words("Impact"), incident.impact)
    yield from _fix(incident, shown, words)
    if incident.verify:
        yield paragraph([word(words("Verify"), bold=True)])
        yield from code_blocks(incident.verify)
    yield from _evidence(incident.evidence, shown, lines, words)
    yield from _symptoms(incident, shown, words)
    yield from named_prose(words("Or"), ", ".join(incident.also_possible))
    for check in incident.next_checks:
        yield from named_prose(words("Check"), check)
    yield from addresses(words("See"), incident.references)


def _fix(incident: Incident, shown: Summary, words: Words) -> Iterator[SlackBlock]:
    for number, step in enumerate(incident.fix, 1):
        is_first = number == 1
        prose = shown.step.rest if is_first else visible(step.do)
        remaining = [code for code in codes(step) if not (is_first and visible_lines(code) == shown.command)]
        if not prose and not remaining and len(remark(step, words)) <= MOST_IN_REMARK:
            continue  # the message shows all of it
        yield from named_prose(words("Fix {number}", number=number), (prose or words("as above")) + remark(step, words))
        for code in remaining:
            yield from code_blocks(code)


def _evidence(events: Iterable[Evidence], shown: Summary, lines: Mapping[str, LineLinks], words: Words) -> Iterator[SlackBlock]:
    whole_lines = {line.event_id for line in shown.proof if line.is_whole}
    repetitions: list[str] = []
    for event, is_new in distinct_events(events):
        links = lines.get(event.event_id, LineLinks()).links
        first_line = event.text.split("\n", 1)[0]
        if not is_new and not links:
            repetitions.append(f"{event.place}  {first_line}")
        elif event.event_id not in whole_lines or links:
            yield from named_prose(words("Proof"), event.place, links, words)
            yield from code_blocks("" if event.event_id in whole_lines else event.text if is_new else first_line)
    if repetitions:
        yield paragraph([word(words("Like these, but for numbers"), bold=True)])
        yield from code_blocks("\n".join(repetitions))


def _symptoms(incident: Incident, shown: Summary, words: Words) -> Iterator[SlackBlock]:
    heading = words(DIGEST_HEADINGS.get(incident.rule, "Explains"))
    all_lines = [member_line(symptom) for symptom in incident.symptoms]
    remaining = [line for number, line in enumerate(all_lines) if number >= len(shown.members) or shown.members[number] != line]
    if remaining:
        yield paragraph([word(heading, bold=True)])
        yield from code_blocks("\n".join(remaining))
