"""Following files: incidents are told as they arise and end, and rotation and truncation lose nothing."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from engine.cli import following
from engine.cli.follow_report import FollowPrinter
from engine.cli.following import FollowedChange, LogFollower
from engine.cli.rulebook import open_rulebook
from engine.model.notifications import Reason

START = datetime(2024, 1, 5, 12, tzinfo=UTC)
RULE = """\
id: greeted
title: "{name} said hello"
status: stable
severity: high
component: broker
detection: {hello: "hello {name}", condition: hello}
entity: [cluster, name]
clear: {at_most: 0, in: 10m}
runbook: {cause: Because, impact: None, fix: [{do: Nothing}]}
tests:
  - {log: "[2022-10-05 12:00:00,000] INFO hello Ann (a.B)", fires: {name: Ann}}
  - {log: "[2022-10-05 12:00:00,000] INFO hi (a.B)", silent: true}
"""


class Tail:
    """A log that is written to, and a clock that the follower reads."""

    def __init__(self, folder: Path) -> None:
        rules = folder / "rules"
        rules.mkdir()
        (rules / "greeted.yml").write_text(RULE)
        self.log, self.now = folder / "server.log", START
        self.log.write_text("")
        self.follower = LogFollower([str(self.log)], {"cluster": "default"}, open_rulebook([rules]).plan, lambda: self.now)

    def write(self, *texts: str) -> None:
        with self.log.open("a") as log:
            log.writelines(f"[{self.now:%Y-%m-%d %H:%M:%S},000] INFO {text} (a.B)\n" for text in texts)

    def looks(self, seconds: float = 3) -> list[FollowedChange]:
        """Let time pass, look every second, and return what was told."""
        changes: list[FollowedChange] = []
        for _ in range(int(seconds)):
            self.now += timedelta(seconds=1)
            changes += self.follower.look().changes
        return changes

    def told(self, seconds: float = 3) -> list[tuple[str, str]]:
        return [(change.reason.value, change.incident.labels["name"]) for change in self.looks(seconds)]


@pytest.fixture
def tail(tmp_path: Path) -> Tail:
    return Tail(tmp_path)


def test_incidents_are_told_as_they_arise_and_end_and_once(tail: Tail) -> None:
    tail.write("hello Ann")
    assert tail.told() == [("opened", "Ann")]
    tail.write("hello Ann", "hello Bob")
    assert tail.told() == [("opened", "Bob")]
    tail.now += timedelta(minutes=11)
    tail.write("hi")
    assert sorted(tail.told(60)) == [("resolved", "Ann"), ("resolved", "Bob")]
    assert [incident.status for incident in tail.follower.incidents] == ["resolved", "resolved"]
    assert tail.follower.lines == 4


def test_a_log_that_is_rotated_truncated_or_made_anew_is_read_to_its_end(tail: Tail) -> None:
    tail.write("hello Ann")
    assert tail.told() == [("opened", "Ann")]
    tail.write("hello Bob")
    tail.log.rename(tail.log.with_name("server.log.1"))
    tail.write("hello Cid")
    assert sorted(tail.told()) == [("opened", "Bob"), ("opened", "Cid")]
    os.truncate(tail.log, 0)
    tail.write("hello Dan, who speaks for longer than anybody before him has ever done here")
    assert tail.told() == [("opened", "Dan,")]


def test_an_event_whose_last_line_is_still_open_is_told_after_a_tick(tail: Tail) -> None:
    tail.write("hello Ann")
    first = tail.looks(1)
    assert first + tail.looks(2) != []


def test_a_file_that_cannot_be_read_any_more_is_reported_once(tail: Tail) -> None:
    tail.write("hello Ann")
    tail.looks()
    tail.log.unlink()
    tail.log.symlink_to("/dev/zero")
    sentences = [sentence for _ in range(3) for sentence in tail.follower.look().sentences]
    assert [sentence for sentence in sentences if "is a device" in sentence] == sentences[:1]
    assert "the file is gone" in sentences[1]
    assert len(sentences) == 2


def test_what_an_opened_incident_is_told_with(tail: Tail) -> None:
    tail.write("hello Ann")
    (change,) = tail.looks()
    assert (change.reason, change.incident.title) == (Reason.OPENED, "Ann said hello")


def test_a_long_log_is_read_in_shares_at_once_and_then_it_is_followed(
    tail: Tail, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(following, "SHARE_LINES", 2)
    tail.write(*["hi"] * 5)
    printing = FollowPrinter(ZoneInfo("UTC"), True)
    ends = []
    for _ in range(4):
        look = tail.follower.look()
        ends.append((look.lines, look.is_end))
        printing.take(look)
    assert ends == [(2, False), (2, False), (1, True), (0, True)]
    assert capsys.readouterr().err == "tocsin: 5 lines read; following from here on, Ctrl-C ends it\n"
