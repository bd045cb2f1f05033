"""The gate finds exactly the signs that match, however few of a text's bytes it looks at."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.match.checks import expression
from engine.match.gate import Gate
from engine.match.signs import Signs
from tests.unit.match.test_screen import Kept

WORDS = (
    "Error",
    "error while",
    "writing to",
    "topic",
    "kafka",
    "KAFKA",
    "오류",
    "\u212aafka",
    "mi\u017f\u017fing",
    "missing",
    "at",
    "",
)
REGEXES = st.lists(
    st.sampled_from(
        [
            *(re.escape(word) for word in WORDS if word),
            *(f"(?i){re.escape(word)}" for word in WORDS if word),
            r"Error\s+while",
            r"(?:kafka|topic) at",
            r"error [a-z]+ing",
            r"(?m)^at ",
            r"(?s)Error.+missing",
            r"writing to (?:a|the) topic",
            r"(?i:error)",
            r"\d{3}",
        ]
    ),
    unique=True,
    max_size=12,
)


@given(REGEXES, st.lists(st.sampled_from([*WORDS, "ERROR", "a", "the topic", "123"])), st.sampled_from([" ", "", "\n"]))
@example([r"(?i)kafka"], ["\u212aafka"], "")
def test_the_signs_in_a_text_are_those_that_match(regexes: list[str], words: list[str], between: str) -> None:
    gate, text = Gate([Signs((regex,)) for regex in regexes]), between.join(words).encode()
    found = gate.signs_in(text)
    assert found == {regex for regex in regexes if expression(regex).search(text)}
    assert gate.possible(found) == {number for number, regex in enumerate(regexes) if regex in found}


def test_what_has_no_sign_is_always_possible() -> None:
    gate = Gate([Signs(), Signs(("boom",)), Signs(("boom", "bang"))])
    assert gate.possible(gate.signs_in(b"nothing")) == {0}
    assert gate.possible(gate.signs_in(b"a boom")) == {0, 1, 2}
    assert gate.possible(gate.signs_in(b"a bang")) == {0, 2}


@pytest.mark.parametrize("damage", [lambda data: data, lambda data: data[:-5], lambda data: b"", lambda data: b'{"a": 1}'])
def test_a_kept_index_is_used_and_a_damaged_one_made_again(damage: object) -> None:
    assert callable(damage)
    kept, signs = Kept(), [Signs(("boom", "bang!"))]
    Gate(signs, kept)
    ((name, data),) = kept.files.items()
    kept.files[name] = damage(data)
    assert Gate(signs, kept).signs_in(b"a bang!") == {"bang!"}
    assert (kept.files[name], kept.stored) == (data, 1 if damage(data) == data else 2)
