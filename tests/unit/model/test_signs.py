"""What stands in a text stands in the folded text when it is folded too."""

from __future__ import annotations

import sys
from itertools import groupby

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.match.checks import expression
from engine.model.signs import folded


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[Broker 17]\t\r\n  at X", "[broker 00] at x"),
        ("  a", " a"),
        ("Straße 5", "strasse 0"),
        ("\u212aafka mi\u017f\u017fing", "kafka missing"),
    ],
)
def test_case_digits_and_lengths_of_blanks_are_lost(text: str, result: str) -> None:
    assert folded(text.encode()).decode() == result


@given(st.text("aB1 \t\né\u212aß", max_size=8), st.text("aB1 \t\né\u212aß", max_size=4), st.text("aB1 \té", max_size=8))
@example("a ", " b", " c")
def test_a_part_of_a_text_stays_a_part(before: str, part: str, behind: str) -> None:
    assert folded(part.encode()) in folded((before + part + behind).encode())


def test_letters_that_are_one_letter_to_re2_are_one_when_folded() -> None:
    letters = [
        chr(code) for code in range(sys.maxunicode + 1) if chr(code).casefold() != chr(code) or chr(code).lower() != chr(code)
    ]
    by_fold = {fold: list(group) for fold, group in groupby(sorted(letters, key=str.casefold), str.casefold)}
    others = "".join(letters)
    for fold, group in by_fold.items():
        if len(fold) == 1:
            match = expression(f"(?i)[{fold}]+").findall(others.encode())
            alike = {letter for run in match for letter in run.decode()}
            assert {letter.casefold() for letter in alike} <= {fold}, (fold, group)
