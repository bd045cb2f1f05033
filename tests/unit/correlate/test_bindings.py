"""Who speaks: two lines that agree, in one file or in two."""

from __future__ import annotations

from engine.correlate.bindings import Bindings, log_of, natural
from engine.model.rules import Component
from tests.building import at, broker, match

NAMES = "component:broker/names"


def named(*lines: tuple[str, str]) -> Bindings:
    """Return the bindings after lines of (source, member)."""
    bindings = Bindings([broker()])
    for number, (source, member) in enumerate(lines):
        bindings.add_line(match(NAMES, number, source, member=member))
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


def test_the_same_line_twice_is_one() -> None:
    bindings = named(("a", "1"))
    bindings.add_line(match(NAMES, 0, "a", member="1"))
    assert bindings.member("a", "broker") is None


def test_a_single_other_name_is_no_doubt_yet() -> None:
    assert named(("a", "1"), ("a", "1"), ("a", "2")).member("a", "broker") == "1"


def test_labels_win_over_names() -> None:
    bindings = named(("a", "1"), ("a", "1"))
    bindings.add_labels("a", {"broker": "9"})
    assert bindings.member("a", "broker") == "9"
    bindings.add_labels("a", {"broker": "8"})
    assert bindings.member("a", "broker") is None
    assert not bindings.bound("a")


def test_a_value_is_found_by_the_label_of_its_component() -> None:
    bindings = Bindings([broker(), Component("connect", "worker", ())])
    bindings.add_labels("a", {"worker": "w"})
    assert (bindings.value("a", "worker"), bindings.value("a", "broker"), bindings.value("b", "worker")) == ("w", None, None)


def test_every_new_fact_is_a_revision_and_nothing_else_is() -> None:
    bindings = named(("a", "1"), ("a", "1"))
    before = bindings.revision
    bindings.add_line(match(NAMES, 2, "a", member="1"))
    bindings.add_labels("a", {"topic": "t"})
    assert bindings.revision == before
    bindings.add_line(match("component:broker/version", 2, "a", version="2.6"))
    assert bindings.revision > before


def test_the_version_that_was_printed_last_before() -> None:
    bindings = named()
    for seconds, version in ((100, "3.0"), (0, "2.6")):
        bindings.add_line(match("component:broker/version", seconds, "a", version=version))
    found = [bindings.version("a", "broker", at(seconds)) for seconds in (-5, 99, 100)]
    assert found == ["2.6", "2.6", "3.0"]
    assert bindings.version("b", "broker", at(100)) is None


def test_members_are_in_natural_order() -> None:
    bindings = named(*((source, member) for _ in "ab" for source, member in (("a", "10"), ("b", "2"), ("c", "x"))))
    assert bindings.roster() == {"broker": ("2", "10", "x")}
    assert sorted(["b", "10", "9"], key=natural) == ["9", "10", "b"]


def test_the_log_that_a_file_belongs_to() -> None:
    names = ["server.log", "server.log.1", "server.log.2022-10-05-17", "server.log-20221005.gz", "server.log.2.zst"]
    assert {log_of(f"b-1/{name}") for name in names} == {"b-1/server.log"}


def test_numbers_that_tell_sources_apart_are_no_rotation() -> None:
    for apart in ("logs/broker-1", "logs-0", "logs/10.0.0.7", "kafka.log#kafka-2"):
        assert log_of(apart) == apart


def test_a_node_that_is_a_broker_and_a_controller_counts_as_a_broker() -> None:
    controller = Component("controller", "controller", (), unless="broker")
    bindings = Bindings([broker(), controller])
    for number, source in enumerate(("a", "a", "b", "b")):
        bindings.add_line(match("component:controller/names", number, source, member="1"))
    assert bindings.members("controller") == {"1": ["a", "b"]}
    for number in (4, 5):
        bindings.add_line(match(NAMES, number, "a", member="1"))
    assert bindings.members("controller") == {"1": ["b"]}
    assert bindings.members("broker") == {"1": ["a"]}
