from __future__ import annotations

import subprocess
from datetime import UTC, datetime

from engine.cli.unknown import MOST_GROUPS, UnknownEvents, UnknownLines
from engine.model.matches import Match
from engine.model.records import LogEvent

AT = datetime(2022, 10, 5, tzinfo=UTC)


def event(message: str, level: str = "ERROR", text: str = "") -> LogEvent:
    return LogEvent("e", "a.log", 0, 1, AT, AT, text or message, message, level)


def matched(rule: str) -> list[Match]:
    return [Match(rule, "e", "a.log", 1, AT, True)]


def plain(text: str) -> str:
    return text


def test_lines_of_one_shape_are_one_group() -> None:
    unknown = UnknownEvents(plain)
    for number in range(3):
        unknown.observe(event(f"Lost connection to node {number} after {number * 7} ms"), [])
    (group,) = unknown.groups()
    assert (group.count, group.level) == (3, "ERROR")
    assert group.template == "Lost connection to node <*> after <*> ms"
    assert group.sample == "Lost connection to node 0 after 0 ms"


def test_a_draft_takes_the_first_line_whatever_is_in_it() -> None:
    lines = UnknownLines("<*>", 1, "ERROR", "it's $(reboot) `x`\n\tat com.example.A")
    assert subprocess.run(
        ["sh", "-c", lines.draft.replace("tocsin rules new", "cat")], capture_output=True, text=True, check=True
    ).stdout == ("it's $(reboot) `x`\n")
    assert lines.draft.endswith("| tocsin rules new")
    assert UnknownLines("<*>", 1, "ERROR", "").draft == ""


def test_what_a_rule_knows_and_what_is_no_error_is_left_out() -> None:
    unknown = UnknownEvents(plain)
    unknown.observe(event("known"), matched("some-rule"))
    unknown.observe(event("mild", "WARN"), [])
    unknown.observe(event("bare", ""), [])
    assert unknown.groups() == ()


def test_a_line_in_which_a_component_names_itself_is_still_unknown() -> None:
    unknown = UnknownEvents(plain)
    unknown.observe(event("[KafkaServer id=1] Fatal"), matched("component:broker/names"))
    assert len(unknown.groups()) == 1


def test_the_worst_level_comes_first_then_the_most_frequent() -> None:
    unknown = UnknownEvents(plain)
    for message, level, times in (("often", "ERROR", 9), ("seldom but more words", "ERROR", 1), ("dying now", "FATAL", 1)):
        for _ in range(times):
            unknown.observe(event(message, level), [])
    assert [group.template for group in unknown.groups()] == ["dying now", "often", "seldom but more words"]


def test_the_number_of_groups_is_bounded() -> None:
    unknown = UnknownEvents(plain)
    for number in range(100):
        unknown.observe(event(" ".join(["word"] * (number + 1))), [])
    assert len(unknown.groups()) == MOST_GROUPS


def test_secrets_stay_out_of_template_and_sample() -> None:
    unknown = UnknownEvents(lambda text: text.replace("hunter2", "***"))
    unknown.observe(event("password=hunter2", text="password=hunter2\n\tat x"), [])
    (group,) = unknown.groups()
    assert "hunter2" not in group.template + group.sample
