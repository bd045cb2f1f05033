"""The picture as SVG: golden files of the stories, nothing unescaped, every mark named, links where there is a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from engine.model.incidents import AlertCourse, Incident
from engine.picture import NARROW, WIDE, Deed, Mark, describe, draw
from engine.picture.description import PERSON, TOLD
from tests.unit.cli.incidents import AT, incident
from tests.unit.picture.stories import incidents, restarted

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e]]>"
STORY_NAMES = ("1", "2", "3", "4", "5")


def target(mark: Mark) -> str:
    return f"#{mark.event_id}" if mark.event_id else ""


def drawn(of: Incident, width: int = WIDE, deeds: tuple[Deed, ...] = ()) -> str:
    picture = describe(of, deeds)
    assert picture is not None
    return draw(picture, width, target)


def elements(svg: str, tag: str) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(svg).iter(f"{SVG}{tag}")


@pytest.mark.slow  # plays a story
@pytest.mark.parametrize("name", STORY_NAMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_pictures_of_the_stories(name: str, width: int, golden: Callable[[str, str], None]) -> None:
    for number, of in enumerate(incidents(name), 1):
        golden(f"pictures/{name}-{of.rule}-{number}-{width}.svg", drawn(of, width))


@pytest.mark.slow  # plays a story
def test_the_picture_of_the_silent_broker_after_its_restart(golden: Callable[[str, str], None]) -> None:
    of = restarted()
    assert of.first_seen is not None
    deeds = (
        Deed(of.first_seen + timedelta(minutes=2), TOLD, "kafka-ops was told: opened"),
        Deed(of.first_seen + timedelta(minutes=9), PERSON, "acknowledged by mina"),
    )
    for width in (WIDE, NARROW):
        golden(f"pictures/4-restarted-{width}.svg", drawn(of, width, deeds))


COURSES = (
    AlertCourse("root", "one", "One went away", "critical", AT, AT, None, 1, {"broker": "1"}, ("b1.log",), "e1"),
    AlertCourse(
        "symptom", "two", "Two complains", "low", AT, AT + timedelta(seconds=8), None, 9, {"broker": "2"}, (), "", (0, 0, 8)
    ),
)


def test_every_mark_has_its_sentence_and_one_with_a_line_leads_to_it() -> None:
    svg = drawn(incident(course=COURSES))
    links = list(elements(svg, "a"))
    assert [link.get("href") for link in links] == ["#e1"]
    titles = [element.findtext(f"{SVG}title") for element in (*links, *elements(svg, "g"))]
    assert all(titles)
    assert any("root cause, critical: One went away" in (title or "") for title in titles)
    assert links[0].get("aria-label") == links[0].findtext(f"{SVG}title")


def test_the_root_is_said_in_words_and_has_a_mark_of_its_own() -> None:
    svg = drawn(incident(course=COURSES))
    assert [text.text for text in elements(svg, "text")].count("root cause") == 1
    assert [path.get("class") for path in elements(svg, "path")].count("rootmark") == 1


def test_dense_events_are_one_dot_with_their_number() -> None:
    times = tuple(n // 20 for n in range(40))
    svg = drawn(incident(course=(COURSES[0], replace(COURSES[1], count=40, offsets_s=times))))
    assert [text.text for text in elements(svg, "text") if text.get("class") == "count"] == ["20", "20"]


def test_a_storm_is_a_bar_with_its_number() -> None:
    offsets = (*range(25), *range(100, 125))
    storm = replace(COURSES[1], count=98_765, last=AT + timedelta(seconds=124), offsets_s=offsets)
    svg = drawn(incident(course=(COURSES[0], storm)))
    assert "98,765" in [text.text for text in elements(svg, "text")]
    assert len(list(elements(svg, "circle"))) == 0


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_text_of_logs_stays_text(width: int) -> None:
    hostile = replace(COURSES[0], title=HOSTILE, labels={"broker": HOSTILE}, severity="critical")
    svg = drawn(incident(title=HOSTILE, course=(hostile,)), width, (Deed(AT, PERSON, HOSTILE),))
    assert "<script" not in svg and "\x1b" not in svg and "\u202e" not in svg
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "defs", "pattern", "rect", "g", "title", "text", "line", "path", "circle", "a"}
    assert "style=" not in svg, "the policy of the pages forbids it"


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_is_drawn_beside_the_picture(width: int) -> None:
    long = replace(COURSES[1], title="a very long title of a symptom " * 5, labels={"broker": "name of a broker" * 5})
    svg = drawn(incident(course=(COURSES[0], long)), width, (Deed(AT + timedelta(days=900), TOLD, "told"),))
    for text in elements(svg, "text"):
        x, length = float(text.get("x", "0")), len(text.text or "") * 6.2
        begin = {"end": x - length, "middle": x - length / 2}.get(text.get("text-anchor", ""), x)
        assert begin >= -2 and begin + length <= width + 2, text.text


def test_one_moment_is_drawn_too() -> None:
    assert "One went away" in drawn(incident(course=COURSES[:1]))
