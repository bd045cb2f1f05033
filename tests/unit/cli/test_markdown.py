"""The report of a scan as Markdown: everything that a ticket needs, and log text that stays text."""

from __future__ import annotations

from datetime import timedelta

from engine.cli.markdown import code_block, plain_text, render_markdown
from engine.cli.triage import Triage
from engine.model.incidents import AlertCourse, Evidence, NotEvaluated, RenderedStep
from tests.unit.cli.incidents import AT, TOO_LARGE, incident
from tests.unit.cli.test_overview import STATS

COURSE = AlertCourse("root", "r", "A record was refused", "critical", AT, AT, None, 1, {"connector": "cdc-source"})


def report(*incidents: object, blind: tuple[NotEvaluated, ...] = ()) -> str:
    return render_markdown(Triage(incidents, (), (), (), blind, (), STATS))  # type: ignore[arg-type]


def test_a_report_has_everything_in_the_order_of_need() -> None:
    text = report(incident(course=(COURSE,), last_seen=AT + timedelta(minutes=3)))
    order = ["# 1 incident: 1 critical.", "## CRITICAL: A Connect task", "**Since**: 2023-02-03 02:05:02 UTC", "(3 min)"]
    order += ["### Cause", "### Impact", "### Timeline", "**connector cdc-source**: root cause, critical", "### Fix"]
    order += ["1. Let the producer send it *(worker)*", "producer.max.request.size=2097152", "*(topic, changes state)*"]
    order += ["plan.json:", "### Verify", "### Proof", "RecordTooLargeException", "### What it explains", "### References"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_blocks_of_a_step_belong_to_its_list_item() -> None:
    text = report(incident(fix=(RenderedStep("Do it", run="first\nsecond"),)))
    assert "1. Do it\n\n   ```sh\n   first\n   second\n   ```" in text


def test_a_fence_is_longer_than_any_backticks_in_the_text() -> None:
    assert code_block("a ``` b ```` c") == "`````\na ``` b ```` c\n`````"


def test_log_text_is_no_markup() -> None:
    assert plain_text("<b>[x](y) *a* _b_ `c` | # ~ &amp;\nnext") == (r"\<b\>\[x\](y) \*a\* \_b\_ \`c\` \| \# \~ \&amp; next")
    hostile = "\x1b[31m</details>\u202e```"
    text = report(incident(title=hostile, cause=hostile, evidence=(Evidence("e", hostile, 1, AT, hostile),)))
    assert "\x1b" not in text and "\u202e" not in text
    assert "\n```\n" not in text.partition("### Proof")[2].partition("````")[0]


def test_what_cannot_be_judged_is_said_at_the_end() -> None:
    text = report(TOO_LARGE, blind=(NotEvaluated("default", "dump.txt", "not known whose log it is"),))
    assert text.rstrip().endswith("## What cannot be judged\n\n- dump.txt: not known whose log it is")


def test_nothing_is_said_as_nothing() -> None:
    assert report().startswith("# Nothing found.")


def test_what_is_minor_is_told_in_full_where_nothing_worse_is() -> None:
    minor = tuple(incident(severity="info", title=f"Trouble {number} was seen") for number in range(4))
    text = render_markdown(Triage((), (), minor, (), (), (), STATS))
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## INFO: Trouble 0 was seen",
        "## INFO: Trouble 1 was seen",
        "## INFO: Trouble 2 was seen",
        "## Minor",
    ]
    assert text.count("### Cause") == 3
    assert "1 x Trouble 3 was seen" in text and "1 x Trouble 2" not in text


def test_what_is_minor_takes_one_line_beside_an_incident() -> None:
    text = render_markdown(Triage((TOO_LARGE,), (), (incident(severity="info", title="Trouble"),), (), (), (), STATS))
    assert "## INFO" not in text and "## Minor" in text
