"""Advice: what is worth a warning, and what is not. Every code has its example in tests/golden/diagnostics."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.linting import lint
from engine.dsl.advice.causes import lists_causes
from engine.dsl.advice.changes import changes_state
from tests.unit.dsl.writing import codes, rule, write

TESTS = """\
tests:
  - {{log: "{log}", fires: {{}}}}
  - {{log: nothing of note, silent: true}}
"""


@pytest.mark.parametrize(
    ("command", "changing"),
    [
        (["kafka-configs.sh", "--alter", "--add-config", "a=b"], "--alter"),
        (["curl", "-s", "-X", "POST", "http://connect/restart"], "POST"),
        (["curl", "-s", "http://connect/POST"], ""),
        (["systemctl", "--no-pager", "status", "kafka-restart"], ""),
        (["kubectl", "-n", "kafka", "rollout", "restart", "sts/kafka"], "rollout"),
        (["kubectl", "get", "pods", "--selector", "set"], ""),
        (["docker", "logs", "restart"], ""),
        (["kafka-leader-election.sh", "--all-topic-partitions"], "kafka-leader-election.sh"),
        (["kafka-topics.sh", "--describe"], ""),
        ([], ""),
    ],
)
def test_a_command_that_changes_something_is_known_by_its_words(command: list[str], changing: str) -> None:
    assert changes_state(command) == changing


@pytest.mark.parametrize(
    ("pattern", "log", "found"),
    [
        ("Connection to node {node:int} failed", "Connection to node 3 failed", []),
        ("Connection to node 3 failed", "Connection to node 3 failed", ["TOC607"]),
        ("no route to 127.0.0.1 nor 0.0.0.0 on {host}", "no route to 127.0.0.1 nor 0.0.0.0 on a", []),
        ("no route to 10.0.0.9", "no route to 10.0.0.9", ["TOC603", "TOC607"]),
        ("group coordinator is away from {group}", "group coordinator is away from a", []),
        ("cannot join group billing-eu", "cannot join group billing-eu", ["TOC607"]),
        ("max.request.size is {size:int}", "max.request.size is 3", []),
    ],
)
def test_what_only_one_installation_has_is_no_part_of_a_pattern(
    tmp_path: Path, pattern: str, log: str, found: list[str]
) -> None:
    body = f'detection: {{seen: "{pattern}", condition: seen}}\n' + TESTS.format(log=log)
    assert codes(lint([write(tmp_path, seen=rule("seen", body))])) == found


def test_a_name_in_the_samples_of_several_rules_is_wording(tmp_path: Path) -> None:
    body = 'detection: {seen: "offsets of topic connect-offsets are lost", condition: seen}\n'
    own = body + TESTS.format(log="offsets of topic connect-offsets are lost")
    other = "detection: {read: topic read, condition: read}\n" + TESTS.format(log="topic read: connect-offsets")
    assert codes(lint([write(tmp_path, alone=rule("alone", own))])) == ["TOC607"]
    assert codes(lint([write(tmp_path, other=rule("other", other))])) == []


def test_a_rule_that_explains_the_other_shadows_nothing(tmp_path: Path) -> None:
    narrow = "detection: {seen: 'disk {disk} full', condition: seen}\nentity: [disk]\n" + TESTS.format(log="disk a full")
    wide = "detection: {seen: 'disk {disk}', condition: seen}\nentity: [disk]\n" + TESTS.format(log="disk a slow")
    write(tmp_path, narrow=rule("narrow", narrow), wide=rule("wide", wide))
    assert codes(lint([tmp_path])) == ["TOC608"]
    explained = narrow + "explains: [{rules: [wide], by: [disk]}]\n"
    write(tmp_path, narrow=rule("narrow", explained))
    assert codes(lint([tmp_path])) == []


@pytest.mark.parametrize(
    ("timespan", "condition", "found"),
    [
        ("90s", "{gte: 4}", []),  # 0, 30, 60 and 90 s
        ("90s", "{gte: 5}", ["TOC609"]),
        ("10m", "count > 3 and count < 4", ["TOC609"]),
        ("10m", "count >= 3 and count < 4", []),
    ],
)
def test_a_count_must_be_within_reach(tmp_path: Path, timespan: str, condition: str, found: list[str]) -> None:
    counted = "detection: {seen: 'disk {disk} full', condition: seen}\ncollapse: 30s\n" + TESTS.format(log="disk a full")
    counting = f"correlation: {{type: event_count, rules: [counted], timespan: {timespan}, condition: {condition}}}\n"
    write(tmp_path, counted=rule("counted", counted, "info"), counting=rule("counting", counting + TESTS.format(log="x")))
    assert codes(lint([tmp_path])) == found


@pytest.mark.parametrize(
    ("correlation", "found"),
    [
        (
            "{type: value_count, rules: [slow], timespan: 1m, condition: {field: disk, gte: 9}}",
            [],
        ),  # collapse keeps values apart
        ("{type: value_count, rules: [slow], group-by: [disk], timespan: 1m, condition: {field: disk, gte: 2}}", ["TOC609"]),
        ("{type: temporal_ordered, rules: [slow, full, slow], timespan: 1m}", []),
        ("{type: temporal_ordered, rules: [slow, full, slow], timespan: 10s}", ["TOC609"]),
        ("{type: pair, open: [slow], expect: [full], within: 1m}", []),
        ("{type: pair, open: [slow], expect: [full, slow], within: 1m}", ["TOC609"]),
        ("{type: pair, open: [slow], expect: [full], group-by: [ms], within: 1m}", ["TOC609"]),
    ],
)
def test_a_correlation_must_be_able_to_hold(tmp_path: Path, correlation: str, found: list[str]) -> None:
    slow = "detection: {seen: 'disk {disk} took {ms:int}', condition: seen}\ncollapse: 30s\n" + TESTS.format(
        log="disk a took 7"
    )
    full = "detection: {seen: 'disk {disk} full', condition: seen}\n" + TESTS.format(log="disk a full")
    both = f"correlation: {correlation}\n" + TESTS.format(log="x")
    write(tmp_path, slow=rule("slow", slow, "info"), full=rule("full", full, "info"), both=rule("both", both))
    assert codes(lint([tmp_path])) == found


def test_what_is_deprecated_says_what_stands_in_for_it_and_nothing_needs_it(tmp_path: Path) -> None:
    seen = "detection: {seen: 'disk {disk} full', condition: seen}\nentity: [disk]\nstatus: deprecated\n" + TESTS.format(
        log="disk a full"
    )
    new = "detection: {seen: 'disk {disk} is full', condition: seen}\nentity: [disk]\n" + TESTS.format(log="disk a is full")
    write(tmp_path, old=rule("old", seen, "info"), new=rule("new", new, "info"))
    assert codes(lint([tmp_path])) == ["TOC613"]
    write(tmp_path, old=rule("old", seen + "related: [new]\n", "info"))
    assert codes(lint([tmp_path])) == []
    write(tmp_path, new=rule("new", new + "related: [old]\n", "info"))
    assert codes(lint([tmp_path])) == []
    write(
        tmp_path,
        new=rule("new", new + "explains: [{rules: [old], by: [disk]}]\nescalate: [{to: low, when: 'count > 9'}]\n", "info"),
    )
    assert [(each.code, each.help) for each in lint([tmp_path])] == [("TOC613", "use `new`")]


@pytest.mark.parametrize(
    ("cause", "listed"),
    [
        ("The copy is damaged: a bad disk, the network, or a fault.", "a bad disk, the network, or a fault"),
        ("It is gone: stopped, hung, or cut off. The rest goes on.", "stopped, hung, or cut off"),
        ("It ended: a pause (by a, b), or a slow disk of {host|a host}.", "a pause , or a slow disk of"),
        ("It takes 3 copies, or fewer where the topic says so.", ""),
        ("The broker says why: its disk is full. Add a disk, or delete something.", ""),
        ("One of {replicas|a, b or c} is away: broker 3 or broker 4.", ""),
    ],
)
def test_a_cause_that_lists_causes(cause: str, listed: str) -> None:
    assert lists_causes(cause) == listed


def test_causes_are_told_apart_by_cases(tmp_path: Path) -> None:
    body = "detection: {seen: 'something bad', disk: 'Input/output error', condition: seen}\n" + TESTS.format(
        log="something bad"
    )
    listing = rule("seen", body).replace("cause: Cause", "cause: 'Damaged: a bad disk, the network, or a fault'")
    assert codes(lint([write(tmp_path, seen=listing)])) == ["TOC618"]
    told = listing.replace("  impact: Impact", "  impact: Impact\n  cases: [{when: disk, cause: Its disk fails}]")
    assert codes(lint([write(tmp_path, seen=told)])) == ["TOC619"]
    test = '  - {log: "something bad: Input/output error", fires: {}, cause: Its disk fails}\n'
    shown = told.replace("tests:\n", f"tests:\n{test}")
    assert codes(lint([write(tmp_path, seen=shown)])) == []


@pytest.mark.parametrize(
    ("instead", "found"),
    [("(not named)", True), ("it is not in the line", True), ("whatever comes", True), ("a topic", False), ("", False)],
)
def test_a_hole_does_not_state_that_its_value_is_missing(tmp_path: Path, instead: str, found: bool) -> None:
    body = "detection: {seen: 'something bad of {topic:word}', condition: seen}\n" + TESTS.format(log="something bad of t")
    stating = rule("seen", body).replace("cause: Cause", f"cause: 'It fails: {{topic|{instead}}}.'")
    assert codes(lint([write(tmp_path, seen=stating)])) == (["TOC623"] if found else [])


def test_a_case_behind_one_that_always_holds_is_never_shown(tmp_path: Path) -> None:
    body = "detection: {seen: 'something bad', disk: 'Input/output error', condition: seen}\n" + TESTS.format(
        log="something bad"
    )
    cases = "  impact: Impact\n  cases: [{when: seen, cause: Anything}, {when: disk, cause: Its disk fails}]"
    test = '  - {log: "something bad: Input/output error", fires: {}}\n'
    shown = rule("seen", body).replace("  impact: Impact", cases).replace("tests:\n", f"tests:\n{test}")
    [finding] = lint([write(tmp_path, seen=shown)])
    assert (finding.code, "`disk`" in finding.message) == ("TOC619", True)
