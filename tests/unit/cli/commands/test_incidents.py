"""`tocsin incidents`: listed, shown, and acted on by a name that a person would type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.model.incidents import Alert, Verdict
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\nstore: sqlite:///./tocsin.db\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `tocsin incidents` over a store with three incidents; return exit code, output and messages."""
    (tmp_path / "tocsin.yml").write_text(CONFIG)
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    with store.batch(BatchId("query", 0)) as ledger:
        ledger.put_incidents(
            [
                incident(id="inc-abc1", alerts=(TOO_LARGE.key,)),
                incident(id="inc-abd2", severity="low", title="Größe\x1b[31m überschritten"),
                incident(id="inc-xyz3", status="resolved", why="quiet", resolved_at=AT),
            ]
        )
    store.close()

    def command(name: str, *arguments: str) -> tuple[int, str, str]:
        code = main(["incidents", name, "-c", str(tmp_path / "tocsin.yml"), *arguments])
        return code, *capsys.readouterr()

    return command


def value(run: Run, *arguments: str) -> Any:
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    return json.loads(out)


def test_incidents_are_listed_severe_ones_first_and_narrowed(run: Run) -> None:
    code, out, _ = run("list")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["inc-abc1", "critical", "open"],
        ["inc-abd2", "low", "open"],
        ["inc-xyz3", "critical", "resolved"],
    ]
    assert "\x1b" not in out
    assert [each["id"] for each in value(run, "list", "--status", "resolved", "--component", "connect")] == ["inc-xyz3"]
    assert [each["id"] for each in value(run, "list", "--label", "task=0", "überschritten")] == ["inc-abd2"]
    assert value(run, "list", "no such word") == []
    assert run("list", "--limit", "1")[1].splitlines()[1] == "and 2 more; --limit shows them"
    code, _, problem = run("list", "--status", "opn")
    assert code == 2 and "there is no status `opn`; known: open, acknowledged" in problem


def test_an_incident_is_acknowledged_shown_and_resolved(run: Run) -> None:
    assert run("ack", "abc", "--by", "mina") == (0, "inc-abc1: acknowledged\n", "")
    assert run("ack", "inc-abc1", "--by", "jun") == (0, "inc-abc1: it is acknowledged already (by mina)\n", "")
    assert run("note", "abc", "the disk\nis full", "--by", "jun")[0] == 0
    code, out, _ = run("show", "abc")
    assert code == 0
    assert "Has it    mina\n" in out
    assert "mina (command): acknowledged" in out and "jun (command): note: the disk" in out
    assert run("resolve", "abc", "--why", "cleaned up", "--by", "mina")[1] == "inc-abc1: resolved: cleaned up\n"
    shown = value(run, "show", "abc")
    assert (shown["status"], shown["owner"], shown["why"]) == ("resolved", "mina", "by mina: cleaned up")
    assert [(each["by"], each["via"]) for each in shown["timeline"] if "via" in each] == [
        ("mina", "command"),
        ("jun", "command"),
        ("mina", "command"),
    ]
    assert run("reopen", "abc", "--by", "mina")[1] == "inc-abc1: reopened\n"


def test_it_is_assigned_judged_and_silenced(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("assign", "abc", "jun", "--by", "mina")[1] == "inc-abc1: assigned to jun\n"
    assert run("list")[1].splitlines()[0].endswith("(jun)")
    assert run("assign", "abc", "--by", "mina")[1] == "inc-abc1: taken from whoever had it\n"
    assert run("not-useful", "abc", "--why", "known")[1] == "inc-abc1: called not useful: known\n"
    assert run("useful", "abc")[1] == "inc-abc1: called useful\n"
    assert value(run, "show", "abc")["handling"]["useful"] is True
    code, out, _ = run("silence", "abc", "--for", "2h", "--of", "entity", "--why", "moving", "--by", "mina")
    assert code == 0 and "silenced with its entity until" in out
    assert main(["silences", "list", "-c", str(tmp_path / "tocsin.yml"), "--format", "json"]) == 0
    (silence,) = json.loads(capsys.readouterr().out)
    assert silence["matchers"] == ['connector="cdc-source"', 'task="0"', 'cluster="default"']
    assert (silence["id"], silence["by"]) == (out.split()[-1], "mina")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ack", "ab"), "`ab` is not the beginning of one id alone: inc-abc1, inc-abd2; write more of it"),
        (("ack", "q"), "there is no incident `q`; see tocsin incidents list"),
        (("show", "q"), "there is no incident `q`"),
        (("ack", "xyz"), "inc-xyz3: it is resolved (quiet); reopen it first"),
        (("note", "abc", " "), "inc-abc1: the note is empty"),
        (("silence", "abc", "--for", "soon"), "`soon` is not a duration"),
        (("silence", "abc", "--for", "0s"), "a silence ends later than it begins"),
    ],
)
def test_what_cannot_be_done_is_refused_and_says_why(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    code, out, message = run(*arguments)
    assert (code, out) == (2, "")
    assert problem in message


def test_the_name_is_that_of_the_user_of_the_machine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "operator")
    run("ack", "abc")
    assert value(run, "show", "abc")["owner"] == "operator"


def test_an_incident_is_shown_with_earlier_ones_and_what_people_wrote(run: Run) -> None:
    run("note", "inc-abc1", "raised the limit", "--by", "mina\x1b")
    run("resolve", "inc-abc1", "--why", "sent again", "--by", "jun")
    code, out, _ = run("show", "inc-abd2")
    assert code == 0
    assert "\x1b" not in out
    first, *_, note, why = out[out.index("Before") :].splitlines()
    assert first.startswith("Before    inc-abc1 (same entity) 2023-02-03 02:05:02 UTC, lasted ")
    assert (note.strip(), why.strip()) == ("mina\\x1b: raised the limit", "jun: resolved: sent again")
    past = value(run, "show", "inc-abd2")["past"]
    assert [remark["text"] for remark in past["incidents"][0]["remarks"]] == ["raised the limit", "sent again"]


def test_an_incident_is_shown_with_what_else_was_considered(run: Run, tmp_path: Path) -> None:
    key = ("default", "worker-slow", TOO_LARGE.key[2])
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    with store.batch(BatchId("query", 1)) as ledger:
        ledger.put_findings([Verdict(key, (Alert(key, "firing", "info", AT, AT, AT, 3, True),))], (), (), ())
    store.close()
    _, out, _ = run("show", "inc-abd2")
    (line,) = [line for line in out.splitlines() if "worker-slow" in line]
    assert line.startswith("Not this  3 x [worker-slow] connector=cdc-source task=0: it only informs")
    assert [each["reason"] for each in value(run, "show", "inc-abd2")["considered"]] == ["informs"]
