from __future__ import annotations

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dsl.patterns import (
    MAX_PATTERN_BYTES,
    TYPES,
    checked_pattern,
    compile_pattern,
    compiled_by_re2,
    named_groups,
    with_holes,
)
from engine.match.checks import compile_check
from engine.match.fields import Fields
from engine.model.rules import Test
from tests.building import event
from tests.unit.dsl.writing import codes, read_map


def captured(pattern: str, text: str) -> dict[str, str] | None:
    """Return the captures of the first place in `text` where `pattern` matches, None where it does not."""
    made = compile_pattern(pattern)
    hit = re2.compile(made.regex).search(text)
    if hit is None:
        return None
    assert all(literal in text for literal in made.literals)
    return {hole.name: hit.group(hole.group) for hole in made.captures}


@pytest.mark.parametrize(
    ("pattern", "text", "captures"),
    [
        ("id={c}-{t:int}}", "Task{id=cdc-source-0} died", {"c": "cdc-source", "t": "0"}),
        ("to {topic}:", "sent to A.B.C: (x)", {"topic": "A.B.C"}),
        ("a {} z", "a one two z", {}),
        ("a {} z", "a one\ntwo z", None),
        ("a b", "a \t\n  b", {}),
        ("a b", "ab", None),
        ("Foo", "foo", None),
        ("is {n:num} s", "is -1.5e3 s", {"n": "-1.5e3"}),
        ("is {n:int} s", "is 1.5 s", None),
        ("took {d:ms} ms", "took 60000 ms", {"d": "60000"}),
        ("on {h:host}:{p:int}", "on kafka-1/10.0.0.5:9092)", {"h": "kafka-1/10.0.0.5", "p": "9092"}),
        ("on {h:host}:{p:int}", "on [::1]:9092", {"h": "[::1]", "p": "9092"}),
        ("in dir {d:path}", "in dir /var/lib/kafka.", {"d": "/var/lib/kafka"}),
        ("in dir {d:path},", r"in dir C:\kafka\logs, x", {"d": r"C:\kafka\logs"}),
        ("stage {s:quoted}", "stage 'VALUE_CONVERTER' with", {"s": "VALUE_CONVERTER"}),
        ("stage '{s:quoted}'", "stage 'VALUE_CONVERTER' with", {"s": "VALUE_CONVERTER"}),
        ("assigned: {p:list}", "assigned: [a-0, b-1] x", {"p": "a-0, b-1"}),
        ("assigned: [{p:list}]", "assigned: [a-0, b-1] x", {"p": "a-0, b-1"}),
        ("because {r:rest}", "because of all that\nnext", {"r": "of all that"}),
        (r"map \{a}", "map {a}", {}),
        ("map {A} {a:b} { } {a b}", "map {A} {a:b} { } {a b}", {}),
        ("50% of $x.*", "50% of $x.*", {}),
    ],
)
def test_holes_match_what_the_language_says(pattern: str, text: str, captures: dict[str, str] | None) -> None:
    assert captured(pattern, text) == captures


@pytest.mark.parametrize(
    "spelling",
    [
        "a.b-c-3",
        "[a.b-c,3]",
        "[a.b-c, 3]",
        "vDiRQgQtSsO5xyXAq3Wc8g:a.b-c-3",
        "{topic='a.b-c', partition=3}",
        "topic = a.b-c, partition = 3",
    ],
)
def test_a_topic_partition_is_read_in_all_its_spellings(spelling: str) -> None:
    found = captured("partition {tp:tp}", f"partition {spelling} failed") or captured("{tp:tp}", spelling)
    assert found is not None
    assert (found["topic"], found["partition"]) == ("a.b-c", "3")


def test_a_named_topic_partition_gives_its_parts_that_name() -> None:
    found = captured("from {source:tp} to {target:tp}", "from a-1 to b-2")
    assert found is not None
    assert {name: found[name] for name in ("source_topic", "source_partition", "target_topic", "target_partition")} == {
        "source_topic": "a",
        "source_partition": "1",
        "target_topic": "b",
        "target_partition": "2",
    }


def test_required_literals_are_the_fixed_words() -> None:
    assert compile_pattern("The message is {n:bytes} bytes, id={x}-ok at").literals == (
        "The",
        "message",
        "bytes,",
        "id=",
        "-ok",
    )


def test_a_pattern_over_the_limit_is_refused() -> None:
    root, report = read_map(f"a: {'x' * (MAX_PATTERN_BYTES + 1)}")
    assert checked_pattern(root.entries[0][1], report) is None
    assert codes(report.all()) == ["TOC303"]


def test_nocase_asks_for_no_literals() -> None:
    root, report = read_map("a: Something Bad")
    made = checked_pattern(root.entries[0][1], report, nocase=True)
    assert made is not None
    assert not made.literals
    assert re2.search(made.regex, "SOMETHING bad")


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=60))
def test_any_text_compiles_for_re2(text: str) -> None:
    assert compiled_by_re2(compile_pattern(text).regex) == ""


PIECES = st.one_of(
    st.sampled_from(
        [f"{{x{index}:{name}}}" for index, name in enumerate(TYPES)] + ["{}", "{word}", " ", "\n", "\\{", "{", "}"]
    ),
    st.text("abc.*+?()[]|^$-=:,'\"", max_size=4),
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join), st.text("abc 01-[],'\"/{}\n", max_size=80))
def test_literals_are_necessary(pattern: str, text: str) -> None:
    made = compile_pattern(pattern)
    if re2.search(made.regex, text):
        assert all(literal in text for literal in made.literals)


@settings(deadline=None)
@given(st.text("abc.*+?()[]|^$-=:,'\"\\ {}\n", max_size=40))
def test_a_pattern_without_holes_matches_its_own_text(text: str) -> None:
    made = compile_pattern(text)
    if not made.captures and "{}" not in text and "\\{" not in text and "\\}" not in text:
        assert re2.search(made.regex, text.strip("\n"))


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        (r"a (?P<x>b)|c (?P<x>d)", [("x", 1), ("x", 2)]),
        (r"(a) (?:b) (?i:c) \(?P (?P<x>d)", [("x", 2)]),
        (r"[(] [^]()] [[:alpha:](] \Q(?P<y>\E (?P<x>d)", [("x", 1)]),
        (r"\\(?<x>d)", [("x", 1)]),
        ("no groups", []),
    ],
)
def test_the_named_groups_of_an_expression_are_counted_as_re2_does(expression: str, groups: list[tuple[str, int]]) -> None:
    assert [(hole.name, hole.group) for hole in named_groups(expression, {})] == groups
    assert dict(reversed(groups)) == re2.compile(expression).groupindex


@pytest.mark.parametrize(
    ("text", "captures"),
    [
        ("at kafka-1:9092 now", {"address": "kafka-1:9092", "host": "kafka-1", "port": "9092"}),
        ("at kafka.example.net:29092.", {"address": "kafka.example.net:29092", "host": "kafka.example.net", "port": "29092"}),
        ("at 10.0.0.5:9092", {"address": "10.0.0.5:9092", "host": "10.0.0.5", "port": "9092"}),
        ("at [fd00::5]:9092", {"address": "[fd00::5]:9092", "host": "[fd00::5]", "port": "9092"}),
        ("at /10.0.0.5:9092", {"address": "10.0.0.5:9092", "host": "10.0.0.5", "port": "9092"}),
        ("at b/10.0.0.5:9092", {"address": "b/10.0.0.5:9092", "host": "b", "ip": "10.0.0.5", "port": "9092"}),
        ("at b/fd00:0:0:5:9092", {"address": "b/fd00:0:0:5:9092", "host": "b", "ip": "fd00:0:0:5", "port": "9092"}),
        ("at b/<unresolved>:9092", {"address": "b/<unresolved>:9092", "host": "b", "port": "9092"}),
        ("at kafka-1", None),
        ("at kafka 1:9092", None),
        ("at 'kafka-1':9092", None),
    ],
)
def test_an_address_with_its_port(text: str, captures: dict[str, str] | None) -> None:
    for test in (pattern_test("at {address:hostport}"), regex_test(r"\bat {address:hostport}")):
        assert compile_check(test)(Fields(event(text))) == captures


def test_a_hole_of_another_name_keeps_its_parts_apart() -> None:
    test = pattern_test("from {one:hostport} to {two:hostport}")
    assert compile_check(test)(Fields(event("from a:1 to b:2"))) == {
        "one": "a:1",
        "one_host": "a",
        "one_port": "1",
        "two": "b:2",
        "two_host": "b",
        "two_port": "2",
    }


def test_an_expression_may_have_holes_of_any_type() -> None:
    test = regex_test(r"(?:size|bytes)={size:bytes} of {tp:tp} in {at:quoted} {2,3}\{size:bytes}")
    assert {hole.name: hole.type for hole in test.captures} == {
        "size": "bytes",
        "tp": "tp",
        "topic": "word",
        "partition": "int",
        "at": "quoted",
    }
    captures = compile_check(test)(Fields(event("bytes=12 of orders-3 in 'x'  {size:bytes}")))
    assert captures == {"size": 12, "tp": "orders-3", "topic": "orders", "partition": 3, "at": "x"}


def pattern_test(text: str) -> Test:
    made = compile_pattern(text)
    return Test("text", "pattern", made.source, made.regex, made.literals, made.captures)


def regex_test(expression: str) -> Test:
    regex, types = with_holes(expression)
    assert not compiled_by_re2(regex)
    return Test("text", "re", expression, regex, (), named_groups(regex, types))
