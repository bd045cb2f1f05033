"""`tocsin rules new, explain, preview, docs, schema, explain-code`: from a log line to a rule that is understood."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from engine.cli.authoring import commands
from engine.cli.main import main
from tests.unit.cli.commands.test_rules import RULE

LINES = (
    "[2021-08-02 04:05:07,937] ERROR [ReplicaManager broker=0] Error processing append operation on partition dawn-0"
    " (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0)"
    " is insufficient to satisfy the min.isr requirement of 2 for partition dawn-0\n"
)
ORDINARY = (
    "[2021-08-02 04:05:07,937] INFO [ReplicaManager broker=1] Error counters of partition dawn-1 are 0 (kafka.server.X)\n"
)
FATAL = "[2021-08-02 04:06:00,000] FATAL The disk of broker 3 is gone (kafka.log.LogManager)\n"
OFTEN = (
    "correlation: {type: event_count, rules: [record-lost], group-by: [cluster, topic], timespan: 1h, condition: {gte: 2}}\n"
)
LOST = "[2022-10-05 17:05:39,869] WARN lost 1000 records of orders. (some.Class)\n"


@pytest.fixture
def pasted(tmp_path: Path) -> Path:
    path = tmp_path / "trouble.log"
    path.write_text(LINES)
    return path


@pytest.fixture
def goodlog(tmp_path: Path) -> Path:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "a.log").write_text(ORDINARY)
    return tmp_path / "good"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "record-lost.yml").write_text(RULE)
    return tmp_path / "rules"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["rules", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_draft_becomes_a_rule_that_passes_its_tests(
    pasted: Path, goodlog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    code, out, err = run(capsys, "new", pasted, "--out", mine, "--goodlog", goodlog)
    assert (code, out) == (0, f"wrote {mine / 'not-enough-replicas.yml'}\n")
    assert "known already: broker-not-enough-replicas" in err
    assert (mine / "not-enough-replicas.yml").read_text().startswith("# yaml-language-server: $schema=rule.schema.json\n")
    assert json.loads((mine / "rule.schema.json").read_text())["required"]
    assert run(capsys, "test", "--rules", mine)[:2] == (0, "2 of 2 tests of 1 rule passed\n")
    found = json.loads(run(capsys, "lint", "--rules", mine, "--format", "json")[1])
    assert [(each["code"], each["line"]) for each in found] == [("TOC612", 15), ("TOC612", 16), ("TOC612", 18)]
    shown = json.loads(run(capsys, "show", "not-enough-replicas", "--rules", mine, "--format", "json")[1])
    assert shown["rule"]["entity"] == ["cluster", "topic", "partition"]
    assert (shown["severity"], shown["component"]) == ("high", "broker")
    assert shown["rule"]["tests"][1] == {"log": ORDINARY, "silent": "true"}


def test_a_draft_is_read_from_standard_input_and_printed(
    goodlog: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(LINES))
    code, out, _ = run(capsys, "new", "--goodlog", goodlog, "--id", "mine")
    assert code == 0
    assert out.startswith("id: mine\n")


def test_several_events_give_one_rule_that_knows_each(
    goodlog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both.log"
    both.write_text(LINES + LINES.replace("dawn-0", "dusk-1") + LINES.replace("07,937", "08,001") + FATAL)
    mine = tmp_path / "mine"
    assert run(capsys, "new", both, "--out", mine, "--goodlog", goodlog, "--id", "mine")[0] == 0
    explained = json.loads(run(capsys, "explain", "mine", both, "--rules", mine, "--format", "json")[1])
    assert (explained["rules"]["mine"]["events"], explained["rules"]["mine"]["fires_on"]) == (4, 4)
    tests = json.loads(run(capsys, "show", "mine", "--rules", mine, "--format", "json")[1])["rule"]["tests"]
    assert [test.get("fires", {}).get("topic", "") for test in tests] == ["dawn", "dusk", "", ""], "one for each that differs"
    assert run(capsys, "test", "--rules", mine)[:2] == (0, "4 of 4 tests of 1 rule passed\n")


def test_a_rule_that_would_fire_where_nothing_is_wrong_is_refused(
    goodlog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = tmp_path / "line.log"
    line.write_text(ORDINARY.replace("INFO", "WARN").replace("dawn-1", "dusk-7"))
    code, out, err = run(capsys, "new", line, "--goodlog", goodlog, "--out", tmp_path / "mine")
    assert (code, out) == (2, "")
    assert "would also fire on" in err and "a.log:1" in err
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("", [], "no log line"),
        (LINES, ["--id", "broker-silent"], "a rule `broker-silent` already"),
        (LINES, ["--id", "Not An Id"], "TOC209"),
    ],
)
def test_what_cannot_be_a_rule_is_said(
    text: str, options: list[str], told: str, goodlog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)
    code, _, err = run(capsys, "new", path, "--goodlog", goodlog, *options)
    assert code == 2
    assert told in err


def test_a_file_that_is_there_is_not_overwritten(
    pasted: Path, goodlog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "not-enough-replicas.yml").write_text("mine")
    code, _, err = run(capsys, "new", pasted, "--goodlog", goodlog, "--out", tmp_path / "mine")
    assert code == 2
    assert "is there already" in err
    assert (tmp_path / "mine" / "not-enough-replicas.yml").read_text() == "mine"


def test_explain_shows_what_was_found_and_what_should_have_followed(
    rules: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOST + LOST.replace("of orders", "from orders"))
    code, out, _ = run(capsys, "explain", "record-lost", log, "--rules", rules)
    assert code == 1
    assert "record-lost fires on 1 of 2 events" in out
    assert "yes lost: lost=1000, topic=orders" in out
    assert "found as far as `lost {lost:int} records`; `of` should follow, but what follows is: from orders." in out
    assert "condition  lost: false" in out


def test_explain_tells_an_unknown_comparison(rules: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (rules / "record-lost.yml").write_text(
        RULE.replace(
            "  condition: lost", '  kept: "kept {kept:int}"\n  condition: lost and (kept > 3 or not kept < 2)'
        ).replace("kept:", "held:", 1)
    )
    log = tmp_path / "a.log"
    log.write_text(LOST)
    code, out, _ = run(capsys, "explain", "record-lost", log, "--rules", rules)
    assert code == 0
    assert "condition  lost and (kept > 3 or not (kept < 2)): unknown: nothing captured kept" in out


def test_explain_follows_a_correlation_to_its_alerts(rules: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (rules / "loses-often.yml").write_text(
        RULE.partition("detection:")[0].replace("record-lost", "loses-often")
        + OFTEN
        + "runbook: {cause: It leaks., impact: Records are gone.}\n"
    )
    log = tmp_path / "a.log"
    log.write_text(LOST)
    code, out, _ = run(capsys, "explain", "loses-often", log, "--rules", rules)
    assert (code, "loses-often: it never holds" in out, "record-lost fires on 1 of 1 events" in out) == (0, True, True)
    log.write_text(LOST + LOST.replace(",869", ",870"))
    code, out, _ = run(capsys, "explain", "loses-often", log, "--rules", rules)
    assert code == 1
    assert "firing topic=orders since 2022-10-05 17:05:39 UTC, count 2" in out


def test_preview_is_the_message_of_the_first_firing_test(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "preview", "record-lost", "--rules", rules)
    assert code == 0
    assert out.startswith("# 🟠 orders lost 1000 records\n*HIGH*  since 2022-10-05 17:05:39 UTC")
    assert "    | retention.bytes=1024\n" in out
    assert "\n↳ Details\n" in out
    message = json.loads(run(capsys, "preview", "record-lost", "--rules", rules, "--format", "json")[1])
    assert message["blocks"][0]["text"]["text"] == "🟠 orders lost 1000 records"
    assert message["attachments"][0]["color"] == "#e8590c"
    assert [page["text"] for page in message["thread"]] == ["Details"]


def test_preview_of_what_nobody_is_told_says_so(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "record-lost.yml").write_text(RULE.replace("severity: high\ncomponent", "severity: info\ncomponent"))
    code, _, err = run(capsys, "preview", "record-lost", "--rules", rules)
    assert code == 2
    assert "it opens no incident" in err


def test_docs_are_a_page_for_each_rule_and_an_index(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "docs", "--rules", rules, "--out", tmp_path / "pages")[:2] == (
        0,
        f"wrote 2 pages to {tmp_path / 'pages'}\n",
    )
    page = (tmp_path / "pages" / "record-lost.md").read_text()
    for told in (
        "Somebody dropped them.",
        "They are gone.",
        "retention.bytes=1024",
        "WARN lost 1000 records",
        "found 1000 records",
    ):
        assert told in page
    assert "[record-lost](record-lost.md)" in (tmp_path / "pages" / "README.md").read_text()


def test_a_page_says_what_holds_only_in_some_cases(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = "  cases:\n    - {when: lost > 5000, cause: A whole segment is gone.}\n  fix:\n"
    step = "    - {do: Look for it in the backup, when: lost > 5000}\n"
    (rules / "record-lost.yml").write_text(RULE.replace("  fix:\n", case + step))
    run(capsys, "docs", "--rules", rules, "--out", tmp_path / "pages")
    page = (tmp_path / "pages" / "record-lost.md").read_text()
    said = page.partition("## Case by case\n\n")[2].partition("\n\n")[0]
    assert said == "- `lost > 5000`: A whole segment is gone.\n- `lost > 5000`: Look for it in the backup"
    assert "backup" not in page.partition("## What to do")[2].partition("##")[0]


def test_a_log_text_cannot_break_out_of_its_page(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "record-lost.yml").write_text(
        RULE.replace("found 1000", "'``` <b> \\u202e found 1000").replace("orders., silent", "orders.', silent")
    )
    run(capsys, "docs", "--rules", rules, "--out", tmp_path / "pages")
    page = (tmp_path / "pages" / "record-lost.md").read_text()
    assert "\n````text\n``` <b>" in page


@pytest.mark.slow
def test_every_built_in_rule_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "docs", "--out", tmp_path)[0] == 0
    count = len(json.loads(run(capsys, "list", "--format", "json")[1]))
    assert len([*tmp_path.glob("*.md")]) == count + 1
    assert "| `NotEnoughReplicasException` |" in (tmp_path / "README.md").read_text()


def test_explain_code_says_what_why_and_how(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain-code", "toc207")
    assert code == 0
    assert "TOC207: The value is not a duration" in out
    assert "Wrong:\n  collapse: 30\n\nRight:\n  collapse: 30s\n" in out
    assert json.loads(run(capsys, "explain-code", "TOC207", "--format", "json")[1])["severity"] == "error"
    assert run(capsys, "explain-code", "TOC999")[0] == 2


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema")
    assert code == 0
    assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_command_of_the_module_is_registered() -> None:
    import typer

    app = typer.Typer()
    commands.register(app)
    assert {each.name for each in app.registered_commands} == {"new", "explain", "preview", "docs", "schema", "explain-code"}
