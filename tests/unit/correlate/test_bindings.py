"""Who speaks: two lines that agree, in one file or in two."""

from __future__ import annotations

from engine.correlate.bindings import Bindings
from tests.building import broker, match

NAMES = "component:broker/names"


def named(*lines: tuple[str, str]) -> Bindings:
    """Return the bindings after lines of (source, member)."""
    bindings = Bindings([broker()])
    for number, (source, member) in enumerate(lines):
        bindings.line(match(NAMES, number, source, member=member))
    return bindings


def test_one_line_is_hearsay_and_two_that_agree_are_a_name() -> None:
    assert named(("a.log", "1")).member("a.log", "broker") is None
    assert named(("a.log", "1"), ("a.log", "1")).member("a.log", "broker") == "1"


def test_two_names_are_none() -> None:
    twice = [("a.log", "1"), ("a.log", "1"), ("a.log", "2"), ("a.log", "2")]
    assert named(*twice).member("a.log", "broker") is None


def test_the_second_line_may_stand_in_another_file_of_the_same_process() -> None:
    bindings = named(("b/server.log.2022-10-05-16", "1"), ("b/server.log.2022-10-05-17", "1"))
    assert bindings.members("broker") == {"1": ["b/server.log.2022-10-05-16", "b/server.log.2022-10-05-17"]}


def test_a_source_that_names_several_once_is_bound_to_none_of_them() -> None:
    assert named(("a.log", "1"), ("a.log", "2"), ("b.log", "1"), ("b.log", "2")).members("broker") == {}


def test_what_was_read_back_binds_as_before() -> None:
    bindings = named(("b/server.log.1", "1"), ("b/server.log", "1"))
    assert Bindings([broker()], bindings.identities).member("b/server.log", "broker") == "1"
