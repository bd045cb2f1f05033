from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dsl.document import TextNode
from engine.dsl.report import Report
from engine.dsl.templates import outline, template
from engine.model.expressions import Call, NameExpression
from engine.model.rules import OMITTED, Hole, Template
from tests.unit.dsl.writing import codes, read_map

KNOWN = {"size": "bytes", "topic": "word", "partition": "int"}


def compiled(text: str, command: bool = False) -> tuple[Template, Report]:
    root, report = read_map("a: '" + text.replace("'", "''") + "'")
    node = root.entries[0][1]
    assert isinstance(node, TextNode)
    return template(node, report, KNOWN, command), report


def test_a_hole_may_say_what_stands_there_instead() -> None:
    made, report = compiled("{topic|a topic} is full")
    assert made.parts == (Hole(NameExpression("topic"), source="{topic|a topic}", instead="a topic"), " is full")
    assert not report.all()


def test_a_hole_may_say_nothing_where_it_has_no_value() -> None:
    made, report = compiled("full (of {topic|})")
    assert made.parts == ("full (of ", Hole(NameExpression("topic"), source="{topic|}", instead=OMITTED), ")")
    assert not report.all()
    assert outline("{topic|} is full") == "{topic} is full"


def test_other_names_may_stand_before_the_words() -> None:
    made, report = compiled("{topic|size|a topic} is full")
    assert made.parts == (
        Hole(NameExpression("topic"), source="{topic|size|a topic}", instead="a topic", others=(NameExpression("size"),)),
        " is full",
    )
    assert not report.all()
    assert outline("{topic|size|a topic} is full") == "{topic} is full"


def test_a_name_before_the_words_has_to_exist() -> None:
    _, report = compiled("{topic|sise|a topic} is full")
    assert codes(report.all()) == ["TOC408"]


def test_the_outline_of_a_template_has_no_words_for_what_is_missing() -> None:
    assert outline("{topic|a topic} got {size:human}") == "{topic} got {size:human}"


def test_a_command_has_nothing_instead_of_what_is_missing() -> None:
    _, report = compiled("--topic {topic|orders}", command=True)
    assert codes(report.all()) == ["TOC408"]


def test_text_and_holes_come_in_order() -> None:
    made, report = compiled("{topic} got {size:human} of {= ceil_pow2(size)}")
    assert made.parts == (
        Hole(NameExpression("topic"), source="{topic}"),
        " got ",
        Hole(NameExpression("size"), "human", source="{size:human}"),
        " of ",
        Hole(Call("ceil_pow2", (NameExpression("size"),)), source="{= ceil_pow2(size)}"),
    )
    assert not report.all()


@pytest.mark.parametrize("text", ["no hole", "{ x }", '{"a": 1}', "{}", r"\{topic\}", "{{", "}"])
def test_other_braces_are_text(text: str) -> None:
    made, report = compiled(text)
    assert made.parts == (text.replace("\\", ""),)
    assert not report.all()


@pytest.mark.parametrize(
    ("hole", "charset"),
    [
        ("{topic}", "word"),
        ("{partition}", "int"),
        ("{topic.all}", "list"),
        ("{bootstrap}", "hosts"),
        ("{connect_url}", "url"),
        ("{= size * 2}", "num"),
        ("{= lower(topic)}", "word"),
        ("{= reassignment(topic, partition.all, brokers)}", "json"),
    ],
)
def test_in_a_command_every_hole_has_a_charset(hole: str, charset: str) -> None:
    made, report = compiled(hole, command=True)
    assert [part.charset for part in made.parts if isinstance(part, Hole)] == [charset]
    assert not report.all()


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("a {tpic}", "TOC408", 8),
        ("a {= size + sise}", "TOC408", 17),
        ("a {= size +}", "TOC401", 15),
        ("a {= size", "TOC401", 7),
        ("a {size:huge}", "TOC606", 7),
        ("a {size|of {topic} bytes}", "TOC606", 7),
        ("a {topic.first}", "TOC408", 8),
    ],
)
def test_a_wrong_hole_is_reported_where_it_stands(text: str, code: str, column: int) -> None:
    _, report = compiled(text)
    assert [(found.code, found.line, found.column) for found in report.all()] == [(code, 1, column)]


@settings(deadline=None)
@given(st.text("{}=:|.ab \\'\"+()topicsize", max_size=40))
def test_any_text_compiles(text: str) -> None:
    made, report = compiled(text)
    assert made.parts
    assert all(code in ("TOC401", "TOC402", "TOC404", "TOC405", "TOC408", "TOC606") for code in codes(report.all()))
