"""A configuration that changes while a run goes on: what is taken up, what needs a restart, what is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import fields, replace

from engine.cli.config_reloading import USES, ConfigReloader, Reconfiguration, RunConfiguration, SettingUse, reconfiguration
from engine.cli.watching import LOOK_EVERY_S
from engine.config import Settings, load
from engine.errors import UsageError

BASE = "sources: [{type: files, paths: [a.log]}]\nreceivers: [{name: a, terminal: {}}, {name: b, terminal: {}}]\n"


def settings_of(folder: Path, more: str = "") -> Settings:
    path = folder / "other.yml"
    path.write_text(BASE + more)
    return load(path)


def test_every_setting_has_a_use() -> None:
    assert {*USES} == {field.name for field in fields(Settings)}


@pytest.mark.parametrize(
    ("more", "taken", "waiting"),
    [
        ("route: {receiver: b}", ("route",), ()),
        ("notify_max_age: 2h", ("notify_max_age",), ()),
        ("overrides: {broker-silent: {severity: low}}", ("overrides",), ()),
        ("clusters: {default: {bootstrap: 'k:1'}}", ("clusters",), ()),
        ("redact: {phone: true}", ("redact",), ()),
        ("retention: 1d\nspark: {cores: 7}", (), ("retention", "spark")),
        ("route: {receiver: b}\nstore: sqlite:///x.db", ("route",), ("store", "spark")),
    ],
)
def test_what_a_change_means(tmp_path: Path, more: str, taken: tuple[str, ...], waiting: tuple[str, ...]) -> None:
    current = settings_of(tmp_path)
    change = reconfiguration(current, settings_of(tmp_path, more))
    assert (change.taken, change.waiting) == (taken, waiting)
    restart = [name for name, (_, use) in USES.items() if use is SettingUse.RESTART]
    assert all(getattr(change.settings, name) == getattr(current, name) for name in restart)


def test_an_app_token_needs_a_restart_while_its_receiver_does_not(tmp_path: Path) -> None:
    def settings(more: str) -> Settings:
        path = tmp_path / "other.yml"
        path.write_text(BASE.replace("{name: b, terminal: {}}", f'{{name: b, slack: {{channel: "#b", token: "env:T"{more}}}}}'))
        return load(path)

    without, with_token = settings(""), settings(', app_token: "env:A"')
    for current, changed in ((without, with_token), (with_token, without), (with_token, settings(', app_token: "env:B"'))):
        change = reconfiguration(current, changed)
        assert (change.taken, change.waiting) == (("receivers",), ("receivers[].slack.app_token",))
        assert change.settings.receivers == changed.receivers
    assert reconfiguration(with_token, settings(', app_token: "env:A", base_url: "http://127.0.0.1:1"')).waiting == ()


class Watched:
    def __init__(self, folder: Path) -> None:
        self.path, self.now, self.said = folder / "tocsin.yml", 0.0, list[str]()
        self.path.write_text(BASE)
        self.changes: list[Reconfiguration] = []
        self.refusal: UsageError | None = None
        self.asked = threading.Event()
        self.reloader = ConfigReloader(
            RunConfiguration(self.path), load(self.path), self.take, self.said.append, lambda: self.now, self.asked
        )

    def take(self, change: Reconfiguration) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.changes.append(change)

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.now += LOOK_EVERY_S
            self.reloader.poll()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_the_master_of_an_option_stays_and_is_no_change_of_the_file(watched: Watched) -> None:
    configuration = RunConfiguration(watched.path, "spark://m:7077")
    watched.reloader = ConfigReloader(
        configuration, configuration.load(), watched.take, watched.said.append, lambda: watched.now
    )
    watched.look()
    assert (watched.said, watched.changes) == ([], [])
    watched.path.write_text(f"{BASE}route: {{receiver: b}}\n")
    watched.look()
    (change,) = watched.changes
    assert (change.taken, change.waiting, change.settings.master) == (("route",), (), "spark://m:7077")


def test_what_changed_between_the_start_and_the_first_look_is_taken(watched: Watched) -> None:
    current = load(watched.path)
    watched.path.write_text(f"{BASE}route: {{receiver: b}}\n")
    watched.reloader = ConfigReloader(
        RunConfiguration(watched.path), current, watched.take, watched.said.append, lambda: watched.now
    )
    watched.look()
    assert [change.taken for change in watched.changes] == [("route",)]


def test_a_change_is_taken_once_it_rests(watched: Watched) -> None:
    watched.path.write_text(f"{BASE}route: {{receiver: b}}\nretention: 1d\n")
    watched.look(1)
    assert watched.changes == [], "it may still be written"
    watched.look(3)
    (change,) = watched.changes
    assert change.settings.route.receiver == "b"
    assert watched.said == [
        f"{watched.path} has changed; taken up: route",
        f"{watched.path} has changed; only a restart takes up: retention",
    ]


def test_mistakes_are_said_once_with_their_places_and_the_run_goes_on(watched: Watched) -> None:
    watched.path.write_text(f"{BASE}route: {{receiver: nobody}}\nroster: 1\n")
    watched.look(4)
    assert watched.changes == []
    assert "goes on with the one before: it is wrong in 2 places" in watched.said[0]
    assert [code for code in ("TOC702", "TOC201") if any(code in sentence for sentence in watched.said)] == ["TOC702", "TOC201"]
    assert len(watched.said) == 3
    watched.path.write_text(BASE.replace("a.log", "b.log"))
    watched.look()
    assert watched.said[3:] == [f"{watched.path} has changed; only a restart takes up: sources"]


def test_what_cannot_be_used_is_refused_and_tried_again_after_the_next_change(watched: Watched) -> None:
    watched.refusal = UsageError("receiver a: env:X: the environment variable X is not set")
    watched.path.write_text(f"{BASE}route: {{receiver: b}}\n")
    watched.look()
    assert "the environment variable X is not set" in watched.said[0]
    watched.refusal = None
    watched.asked.set()
    watched.reloader.poll()
    assert [change.taken for change in watched.changes] == [("route",)]


def test_what_cannot_be_used_is_tried_again_in_silence_until_it_can(watched: Watched) -> None:
    watched.refusal = UsageError("receiver a: env:X: the environment variable X is not set")
    watched.path.write_text(f"{BASE}route: {{receiver: b}}\n")
    watched.look(4)
    assert len(watched.said) == 1
    watched.refusal = UsageError("receiver a: file:x: there is no such file")
    watched.look(2)
    assert len(watched.said) == 2
    watched.refusal = None
    watched.reloader.poll()
    assert watched.changes == [], "it is not read more often than it is looked at"
    watched.look(1)
    assert [change.taken for change in watched.changes] == [("route",)]
    watched.look(3)
    assert len(watched.changes) == 1


def test_a_touch_or_a_file_that_is_gone_changes_nothing(watched: Watched) -> None:
    watched.path.touch()
    watched.look()
    assert watched.said == []
    watched.path.unlink()
    watched.look(4)
    assert len(watched.said) == 1
    assert "cannot be read" in watched.said[0]


def test_a_change_that_was_put_back_is_taken_back(watched: Watched) -> None:
    for text in (f"{BASE}route: {{receiver: b}}\n", BASE):
        watched.path.write_text(text)
        watched.look()
    assert [change.settings.route.receiver for change in watched.changes] == ["b", "a"]
    assert replace(watched.changes[-1].settings) == load(watched.path)
