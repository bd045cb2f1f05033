"""What a fix lacks is named once, with where it is given."""

from __future__ import annotations

from msgspec.structs import replace

from engine.model.incidents import RenderedStep
from engine.model.placeholders import placeholder, unfilled, unfilled_in, why_unfilled
from tests.unit.cli.incidents import TOO_LARGE


def test_names_are_collected_once_in_order() -> None:
    assert unfilled(["a ${b:?} ${a:?}", "${b:?} $HOME ${c} ${d:-1}"]) == ["b", "a"]
    step = RenderedStep(do="${x:?} is prose", set={"k": placeholder("size")}, run="cmd ${bootstrap:?}")
    assert unfilled_in(replace(TOO_LARGE, fix=(step,), verify="check ${topic:?}")) == ["size", "bootstrap", "topic"]


def test_the_sentence_says_where_a_value_is_given() -> None:
    assert why_unfilled([]) == ""
    assert why_unfilled(["bootstrap"]) == (
        "${bootstrap:?}: scan --bootstrap HOST:PORT, or `clusters` of tocsin.yml, fills it in."
    )
    assert why_unfilled(["topic", "connect_url", "bootstrap", "size"]) == (
        "${connect_url:?} and ${bootstrap:?}: scan --connect-url URL --bootstrap HOST:PORT, or `clusters` of tocsin.yml,"
        " fills it in. "
        "${topic:?} and ${size:?}: these lines do not tell it; write the value there."
    )
