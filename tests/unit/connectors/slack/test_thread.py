"""What the message of an incident does not show is in its thread, once."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from connectors.slack import breaches, details, parent
from connectors.slack.thread import MOST_PAGES
from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.links import LineLinks, Link
from engine.model.phrases import named
from engine.model.visible import visible
from tests.unit.cli.incidents import AT, TOO_LARGE, incident
from tests.unit.connectors.slack.reading import shown

WORDS = st.text("ab .!?(\n\t\x1b", min_size=1, max_size=700)


def thread(incident: Incident) -> str:
    return "\n".join(text for page in details(incident) for text in shown(page.blocks))


def everything(incident: Incident) -> str:
    """Return what the message and its thread show, in one text without blanks and line ends."""
    message = parent(incident)
    return squeezed("".join(shown([*message.blocks, *message.barred])) + thread(incident))


def squeezed(text: str) -> str:
    """Return `text` without what a division between message and thread, or between two blocks, may take away."""
    return "".join(text.split())


def texts(incident: Incident) -> Iterator[str]:
    """Yield every text that a reader must be able to find."""
    yield from map(visible, (incident.title, named(incident.labels), incident.why, incident.impact, *incident.next_checks))
    for step in incident.fix:
        settings = [f"{key}={value}" for group in (step.set, step.also) for key, value in group.items()]
        yield from (visible(step.where), *(visible(line) for setting in settings for line in setting.split("\n")))
        yield from (line for code in (*step.file.values(), step.run) for line in map(visible, code.split("\n")))
    for event in incident.evidence:
        yield from map(visible, event.text.split("\n"))
    yield from (visible(symptom.title) for symptom in incident.symptoms)
    yield from (*incident.also_possible, *incident.references)


@given(a=WORDS, b=WORDS, c=WORDS, d=WORDS, status=st.sampled_from(["open", "acknowledged", "resolved", "retracted"]))
def test_nothing_is_lost_between_message_and_thread(a: str, b: str, c: str, d: str, status: str) -> None:
    made = incident(
        status=status,
        title=f"title{a}",
        why=f"why{b}",
        impact=f"impact{b}",
        labels={"topic": f"label{c}"},
        fix=(
            RenderedStep(f"do{b}", f"where{d}", {"k": f"set{a}"}, {"l": f"also{b}"}, {f"path{c}": f"file{d}"}, f"run{a}", True),
            RenderedStep(f"then{c}", f"there{a}", run=f"command{d}"),
        ),
        evidence=tuple(Evidence(f"e{n}", "a.log", n, AT, f"{chr(n + 97)}line{text}") for n, text in enumerate((a, b, c, d))),
        symptoms=(Symptom("rule", f"symptom{d}", 3, {"topic": a}),),
        next_checks=(f"check{a}", f"another{b}"),
    )
    shown_text = everything(made)
    for text in texts(made):
        assert squeezed(text) in shown_text


@given(cause=WORDS)
def test_a_cause_is_divided_and_not_repeated_or_whole_when_its_first_sentence_is_too_long(cause: str) -> None:
    made = incident(cause=cause, impact="", fix=(), verify="", evidence=(), symptoms=(), also_possible=(), references=())
    first = shown(parent(made).blocks)[2] if len(parent(made).blocks) > 2 else ""
    rest = thread(made).partition("Check  ")[0].removeprefix("Cause  ")
    whole = squeezed(visible(cause))
    assert squeezed(first) + squeezed(rest) == whole or (first.endswith("…") and squeezed(rest) == whole)


def test_what_the_message_shows_is_not_in_the_thread_again() -> None:
    rest = thread(TOO_LARGE)
    for text in ("cdc-source tried to send", "Let the producer send it", "producer.max.request.size", "Explains 1 line"):
        assert text not in rest
    assert [
        line for line in rest.split("\n") if line.startswith(("Impact", "Fix", "Verify", "Proof", "Or", "Check", "See"))
    ] == [
        "Impact  The task is dead until someone restarts it; nothing behind it flows.",
        "Fix 2  Let the topic take it, the next refusal once the first is lifted (topic, changes state)",
        "Fix 3  Keep the plan beside it",
        "Verify",
        "Proof  connect.log#kafka-connect-2:12",
        "Or  broker-silent",
        "Check  Is the record meant to be this large?",
        "See  https://kafka.apache.org/documentation/#producerconfigs_max.request.size",
    ]


def test_an_incident_that_is_over_has_everything_in_its_thread() -> None:
    rest = thread(incident(status="resolved"))
    for text in (
        "When  CRITICAL, resolved since",
        "cdc-source tried to send",
        "Let the producer send it",
        "connector=cdc-source",
    ):
        assert text in rest


def test_a_merged_incident_and_one_without_more_to_say_have_no_details() -> None:
    assert details(incident(status="merged", merged_into="inc-2")) == []
    short = Evidence("e", "a.log", 1, AT, "one line")
    bare = incident(cause="Why.", impact="", fix=(RenderedStep("Do it", run="ls"),), verify="", evidence=(short,), symptoms=())
    assert details(replace(bare, also_possible=(), next_checks=(), references=())) == []


def test_only_real_addresses_become_links() -> None:
    made = incident(references=("javascript:alert(1)", "the manual", "https://ok.example"))
    elements = [e for page in details(made) for block in page.blocks for part in block["elements"] for e in part["elements"]]
    assert [element["url"] for element in elements if element["type"] == "link"] == ["https://ok.example"]


def test_a_line_of_evidence_leads_on_when_the_address_is_short() -> None:
    event_id = TOO_LARGE.evidence[0].event_id
    for link, is_shown in ((Link("line", "https://k/1"), True), (Link("line", "https://k/" + "x" * 1000), False)):
        pages = details(TOO_LARGE, {event_id: LineLinks((link,), "q")})
        assert (f"{link.url}In Kibana" in "".join(text for page in pages for text in shown(page.blocks))) is is_shown


def test_events_that_differ_in_numbers_only_are_listed_together() -> None:
    events = tuple(Evidence(f"e{n}", "a.log", n, AT, f"failed {n} times\nbecause of it") for n in range(50))
    rest = thread(incident(evidence=events))
    assert rest.count("because of it") == 1
    assert "Like these, but for numbers\na.log:1  failed 1 times\na.log:2  failed 2 times" in rest
    assert "a.log:49  failed 49 times" in rest


def test_what_is_too_long_for_a_message_goes_into_the_next_and_beyond_the_last_is_counted() -> None:
    steps = tuple(RenderedStep(f"Step {number}", run="x" * 2000) for number in range(60))
    pages = details(incident(fix=steps[:15]))
    assert [page.text for page in pages] == ["Details", "More details", "More details"]
    assert sum(text.startswith("Fix ") for page in pages for text in shown(page.blocks)) == 15
    pages = details(incident(fix=steps))
    assert len(pages) == MOST_PAGES
    assert shown(pages[-1].blocks)[-1].endswith("more parts did not fit in here; the incident's page has them.")
    assert all(breaches(page.text, page.blocks) == [] for page in pages)
