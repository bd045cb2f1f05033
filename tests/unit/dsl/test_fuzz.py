"""Whatever stands in a rule file or an expression: findings, never a traceback, a hang or anything that runs.

`pytest -m long tests/unit/dsl/test_fuzz.py` goes on for TOCSIN_FUZZ_S seconds (default 60).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import dumps, loads
from engine.dsl import builtin_rules
from engine.dsl.advice import advise
from engine.dsl.files import RuleSource
from engine.dsl.grammar import ExpressionError, parse
from engine.dsl.pack import compile_sources
from engine.match.matcher import Matcher
from engine.model.expressions import Unknown, evaluate, names
from engine.model.rules import Plan
from tests.building import event

GOLDEN = Path(__file__).parents[2] / "golden" / "diagnostics"
SLOWEST_S = 20.0  # for one file on a busy machine; a hang takes for ever
PIECES = (
    *("{", "}", "[", "]", ":", ": ", "- ", "#", " #", "&a", "*a", "!!python/object/apply:os.system", "|", ">-", "'", '"', "\\"),
    *("{}", "{x}", "{x:int}", "{= ", "{tp:tp}", "\\{", "\n", "\n  ", "\t", "\0", "\ufeff", "\u202e", "\U0001f600", "\ud800"),
    *("(", ")", "not ", " and ", " or ", "1 of x*", "all of them", "==", "<", "-", "%", "10m", "9" * 25, "ceil_pow2(", ".max"),
    *("(?i)", "(a+)+$", "[^", "{1000}", "{2000}", "\\p{Greek}", "(?P<n>", "type: pair", "type: value_count", "within: 1s"),
    *("timeline: |\n      at 0s: x\n      at 1s: fires {", "of: x", "field: x", "|term", "|re", "|all", "~", "null", "<<: "),
)
WORDS = ("a", "b", "size", "x_1", "not", "and", "or", "of", "them", "true", "1", "2.5", "10m", "'t'", *PIECES)


@cache
def texts() -> tuple[str, ...]:
    """Return files to start from: shipped rules, and those with a mistake."""
    files = [*builtin_rules().rglob("*.yml"), *GOLDEN.rglob("*.yml")]
    return tuple(file.read_bytes().decode("utf-8", "replace") for file in sorted(files))


def mutated(random: Random) -> str:
    """Return a file with a few pieces dropped, doubled, swapped for others, or put where they do not belong."""
    text = random.choice(texts())
    for _ in range(random.randint(1, 6)):
        low = random.randrange(len(text) + 1)
        high = min(len(text), low + random.choice((0, 0, 1, 3, 40)))
        text = (
            text[:low]
            + random.choice((random.choice(PIECES), text[low:high] * 2, "", random.choice(texts())[:80]))
            + text[high:]
        )
    return text


def check_file(data: bytes, kind: str = "rule") -> None:
    began = time.monotonic()
    pack = compile_sources([RuleSource(Path("fuzzed.yml"), kind, data)])
    for found in advise(pack):
        assert found.render().startswith(("error[TOC", "warning[TOC"))
        assert found.line >= 0 and found.column >= 0
    if not pack.errors():
        Matcher(loads(dumps(pack.plan), Plan)).match_event(event("Error while writing to orders-3 of size 12"))
    assert time.monotonic() - began < SLOWEST_S


def check_expression(text: str) -> None:
    try:
        made = parse(text, ["a", "b", "x_1"])
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
        assert error.message
        return
    known = dict(zip(sorted(names(made)), ("text", 10**18, -1.5, True, [1, 2]), strict=False))
    for environment in ({}, known):
        assert isinstance(evaluate(made, environment), Unknown | str | int | float | list)


@settings(max_examples=settings().max_examples * 3 // 2, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["rule", "rule", "rule", "component", "format", "terms"]))
def test_mutated_files(random: Random, kind: str) -> None:
    check_file(mutated(random).encode("utf-8", "surrogatepass"), kind)


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: f"id: {text}".encode("utf-8", "replace"))))
def test_any_bytes(data: bytes) -> None:
    check_file(data)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
def test_any_expression(text: str) -> None:
    check_expression(text)


@pytest.mark.parametrize(
    "text", ["(" * 5000, "not " * 2000, "- " * 2000 + "1", "a and " * 600 + "a", "1 of " + "x" * 4000, "a" * 5000]
)
def test_long_expressions(text: str) -> None:
    check_expression(text)


def test_nothing_runs(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    for tag in ("!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os.system"):
        check_file(f"id: x\ntitle: {tag} ['touch {trace}']\nnotes: {tag} [\"touch {trace}\"]\n".encode())
    check_expression(f"__import__('os').system('touch {trace}')")
    assert not trace.exists()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(0)
def test_for_long() -> None:
    until, seed = time.monotonic() + float(os.environ.get("TOCSIN_FUZZ_S", "60")), time.time_ns()
    kinds: tuple[Callable[[Random], None], ...] = (
        lambda random: check_file(mutated(random).encode("utf-8", "surrogatepass")),
        lambda random: check_file(random.randbytes(random.randrange(200))),
        lambda random: check_expression(" ".join(random.choices(WORDS, k=random.randint(1, 40)))),
    )
    count = 0
    while time.monotonic() < until:
        count += 1
        try:
            kinds[count % len(kinds)](Random(seed + count))
        except BaseException as error:
            raise AssertionError(f"kind {count % len(kinds)} with the seed {seed + count}") from error
    print(f"{count} inputs")
