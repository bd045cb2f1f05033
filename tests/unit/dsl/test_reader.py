from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dsl import builtin_rules
from engine.dsl.advice import advise
from engine.dsl.document import TextNode, place, plain
from engine.dsl.files import RuleSource
from engine.dsl.pack import compile_sources
from engine.dsl.reader import MAX_FILE_BYTES, read
from tests.unit.dsl.writing import codes, read_map


def test_scalars_stay_text() -> None:
    root, report = read_map("a: yes\nb: 010\nc: 2022-10-05\nd: null\ne:\nf: 1e3\n")
    assert plain(root) == {"a": "yes", "b": "010", "c": "2022-10-05", "d": "null", "e": "", "f": "1e3"}
    assert not report.all()


@pytest.mark.parametrize(
    ("text", "word", "line", "column"),
    [
        ("a: plain words here", "here", 1, 16),
        ("a: plain\n  folded words", "words", 2, 10),
        ("a: >-\n    folded\n    words\n\n    and more", "more", 5, 9),
        ("a: |\n  kept\n    deeper", "deeper", 3, 5),
        ("a: 'it''s quoted'", "quoted", 1, 11),
        ('a: "tab\\tand \\u0041 more"', "more", 1, 21),
        ('a: "joined \\\n   lines"', "lines", 2, 4),
        ("é: ü plain", "plain", 1, 6),
    ],
)
def test_places_inside_scalars_are_exact(text: str, word: str, line: int, column: int) -> None:
    root, _ = read_map(text)
    node = root.entries[0][1]
    assert isinstance(node, TextNode)
    mark = place(node, node.value.index(word))
    assert (mark.line, mark.column) == (line, column)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    document, report = read("x.yml", b"\xef\xbb\xbfa: 1\r\nb:\r\n  - c\r\n")
    assert plain(document.root) == {"a": "1", "b": ["c"]}
    assert not report.all()


def test_a_file_over_the_limit_is_not_read_further() -> None:
    document, report = read("x.yml", b"a: " + b"x" * MAX_FILE_BYTES)
    assert codes(report.all()) == ["TOC102"]
    assert not document.root.entries


YAML_LIKE = st.text(st.sampled_from(string.ascii_lowercase[:6] + "{}[]:,-#&*!|>'\"%@` \n\t\\=.0"), max_size=200)
WORDS = """
id title severity component detection condition correlation type rules group-by timespan entity runbook cause fix run tests
log fires silent explains by names label version heartbeats header examples clear escalate when
states begins ends not_during text|re text|contains
"""
KEYS = st.sampled_from(WORDS.split())
VALUES = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)
TREES = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


def as_yaml(tree: object) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{as_yaml(key)}: {as_yaml(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(as_yaml(item) for item in tree) + "]"
    return "'" + str(tree).replace("'", "''") + "'"


def compile_everything(*files: bytes) -> None:
    """Compile each file as a rule, a component and a format, beside the others, and take every advice."""
    kinds = ("rule", "component", "format")
    sources = [RuleSource(Path(f"{kind}{index}.yml"), kind, data) for kind in kinds for index, data in enumerate(files)]
    advise(compile_sources(sources))


def rules_and_samples() -> list[str]:
    golden = Path(__file__).parents[2] / "golden" / "diagnostics"
    shipped = sorted(builtin_rules().rglob("*.yml"))[::5]
    return [file.read_text("utf-8", "replace") for file in (*sorted(golden.rglob("*.yml")), *shipped)]


TEXTS = rules_and_samples()


@settings(deadline=None)
@given(st.binary(max_size=200) | YAML_LIKE.map(str.encode))
def test_arbitrary_bytes_give_findings_and_no_exception(data: bytes) -> None:
    compile_everything(data)


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, TREES, max_size=8), min_size=1, max_size=2))
def test_arbitrary_structure_gives_findings_and_no_exception(trees: list[object]) -> None:
    compile_everything(*(as_yaml(tree).encode() for tree in trees))


@settings(max_examples=settings().max_examples * 3 // 5, deadline=None)
@given(st.data())
def test_a_rule_with_damage_gives_findings_and_no_exception(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    middle = data.draw(YAML_LIKE | VALUES | st.sampled_from(TEXTS).map(lambda other: other[start:end]))
    compile_everything((text[:start] + middle + text[end:]).encode(), data.draw(st.sampled_from(TEXTS)).encode())
