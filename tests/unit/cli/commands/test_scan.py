"""What `tocsin scan` promises: one answer for good and bad input together, one sentence for each fault, the right exit code."""

from __future__ import annotations

import gzip
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from engine.cli.main import main
from engine.columns import bounded, by_line
from engine.model.records import Block
from tests.unit.cli.test_rulebook import write

TROUBLE = b"""\
[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] WorkerSourceTask{id=cdc-source-0} failed to send record to A.B.C:  \
(org.apache.kafka.connect.runtime.AbstractWorkerSourceTask:406)
org.apache.kafka.common.errors.RecordTooLargeException: The message is 1125872 bytes when serialized which is larger than \
1048576, which is the value of the max.request.size configuration.
"""
QUIET = b"[2023-02-03 02:05:02,285] INFO nothing to see (x.Y)\n"
UNKNOWN = b"[2023-02-03 02:05:02,285] ERROR the flux of node 17 is inverted (x.Y)\n"
RULE = "connect-record-too-large-client"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "connect.log"
    path.write_bytes(TROUBLE)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    """Run a scan and return its exit code, its JSON and what it said on stderr."""
    code = main(["scan", *map(str, arguments), "--format", "json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def rules_of(document: dict[str, Any]) -> list[str]:
    return [incident["rule"] for incident in document["incidents"]]


def test_an_incident_is_found_and_the_exit_code_says_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = answer(capsys, log)
    assert (code, err) == (1, "")
    (incident,) = document["incidents"]
    assert incident["rule"] == RULE
    assert incident["first_seen"] == "2023-02-03T02:05:02.285Z"
    assert incident["captures"]["size"] == 1125872
    assert incident["evidence"][0]["source"] == str(log)
    assert incident["evidence"][0]["line"] == 1
    assert document["stats"]["lines"] == 2
    assert document["stats"]["events"] == 1


def test_nothing_found_is_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_bytes(QUIET)
    code, document, _ = answer(capsys, tmp_path)
    assert (code, document["incidents"], document["pending"]) == (0, [], [])


def test_the_text_report_of_the_same(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(log)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("1 incident: 1 critical. 2 lines read in ")
    assert "producer.max.request.size=2097152" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress, bytes], ids=["gz", "zst", "plain"])
def test_compressed_files_are_read(tmp_path: Path, pack: Any, capsys: pytest.CaptureFixture[str]) -> None:
    name = {gzip.compress: "a.log.gz", bytes: "a.log"}.get(pack, "a.log.zst")
    (tmp_path / name).write_bytes(pack(TROUBLE))
    assert rules_of(answer(capsys, tmp_path)[1]) == [RULE]


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TROUBLE))))  # type: ignore[arg-type]
    _, document, _ = answer(capsys, "-")
    assert document["incidents"][0]["evidence"][0]["source"] == "stdin"


def test_bad_input_is_told_each_in_a_sentence_and_the_good_is_read(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "broken.log").write_bytes(b"\xfa\xfb is no UTF-8\n" + QUIET)
    (tmp_path / "long.log").write_bytes(b"x" * 5_000_000 + b"\n" + QUIET)
    code, document, err = answer(capsys, tmp_path, tmp_path / "gone.log")
    assert code == 3
    assert rules_of(document) == [RULE]
    assert document["stats"]["lines"] == 2 + 2 + 2
    assert sorted(document["notes"]) == [
        f"{tmp_path}/core: is not text (it holds NUL bytes)",
        f"{tmp_path}/empty.log: is empty",
        f"{tmp_path}/gone.log: there is no such file",
    ]
    assert sorted(err.splitlines()) == [
        f"tocsin: {tmp_path}/core: is not text (it holds NUL bytes)",
        f"tocsin: {tmp_path}/gone.log: there is no such file",
    ]


def test_a_file_without_permission_is_told(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = tmp_path / "locked.log"
    locked.write_bytes(QUIET)
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)  # the superuser is refused nothing
    code, document, err = answer(capsys, tmp_path)
    assert code == 3
    assert f"{locked}: no permission to read it" in err
    assert rules_of(document) == [RULE]


def test_wrong_rules_are_all_told_and_the_rest_is_used(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    write(mine, "nothing-to-see", "INFO nothing to see")
    for number in range(10):
        (mine / f"wrong-{number}.yml").write_text(f"id: wrong-{number}\nseverity: dire\n")
    code, document, err = answer(capsys, log, "--rules", "builtin", "--rules", mine)
    assert code == 2
    assert all(f"{mine}/wrong-{number}.yml:" in err for number in range(10))
    assert rules_of(document) == [RULE]
    assert f"{mine}/wrong-0.yml: not used; its rules have errors" in document["notes"]


def test_errors_that_no_rule_knows_are_grouped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(UNKNOWN + UNKNOWN.replace(b"17", b"18"))
    _, document, _ = answer(capsys, path)
    (group,) = document["unknown"]
    assert (group["count"], group["level"]) == (2, "ERROR")
    assert group["template"].startswith("the flux of node <*> is inverted")
    assert "node 17" in group["sample"]


def test_what_is_no_trouble_until_there_is_more_of_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = (
        b"2021-07-06 21:10:51 INFO  AbstractOperator:399 - Reconciliation #5815(timer) Kafka(shop/main): Reconciliation is in "
    )
    once += b"progress\n"
    path = tmp_path / "a.log"
    path.write_bytes(once)
    _, document, _ = answer(capsys, path)
    assert ([each["rule"] for each in document["minor"]], document["incidents"]) == (["strimzi-reconciliation-stuck"], [])
    path.write_bytes(b"".join(once.replace(b":10:", f":{minute}:".encode()) for minute in range(10, 30, 3)))
    _, document, _ = answer(capsys, path)
    assert ([each["rule"] for each in document["incidents"]], document["minor"]) == (["strimzi-reconciliation-stuck"], [])


NO_LEADER = (
    b"[2024-03-02 10:11:12,123] WARN [Producer clientId=p] Error while fetching metadata with correlation id 1 : "
    b"{orders=LEADER_NOT_AVAILABLE} (org.apache.kafka.clients.NetworkClient)\n"
)
CALM = b"[2024-03-02 10:11:12,124] INFO [Producer clientId=p] Cluster ID: abc (org.apache.kafka.clients.Metadata)\n"


@pytest.mark.parametrize(
    ("text", "incidents", "minor"),
    [
        pytest.param(NO_LEADER, ["low"], [], id="a warning alone"),
        pytest.param(49 * CALM + NO_LEADER, ["low"], [], id="a warning at the end of few lines"),
        pytest.param(50 * CALM + NO_LEADER, [], ["info"], id="a warning at the end of many lines"),
        pytest.param(NO_LEADER + CALM, [], ["info"], id="calm after a warning"),
        pytest.param(NO_LEADER.replace(b"WARN", b"INFO"), [], ["info"], id="nothing that warns"),
    ],
)
def test_a_warning_that_ends_a_short_piece_of_log_is_told(
    tmp_path: Path, text: bytes, incidents: list[str], minor: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(text)
    code, document, _ = answer(capsys, path)
    assert [each["severity"] for each in document["incidents"]] == incidents
    assert [each["severity"] for each in document["minor"]] == minor
    assert {each["rule"] for each in document["incidents"] + document["minor"]} == {"client-leader-not-available"}
    assert code == (1 if incidents else 0)


GENERATIONS = b"".join(
    b"[2024-03-02 10:11:12,%d] INFO [GroupCoordinator 0]: Stabilized group carts generation %d (__consumer_offsets-7) "
    b"(kafka.coordinator.group.GroupCoordinator)\n" % (100 + number, 1040 + number)
    for number in range(3)
)


@pytest.mark.parametrize(
    ("text", "incidents"),
    [
        pytest.param(GENERATIONS, [("group-rebalance-loop", "low")], id="a pattern, by two rules that are told as one"),
        pytest.param(GENERATIONS + 48 * CALM, [], id="a pattern in a longer log"),
        pytest.param(GENERATIONS.splitlines(keepends=True)[0], [], id="no pattern"),
    ],
)
def test_a_pattern_that_holds_in_a_short_piece_of_log_is_told(
    tmp_path: Path, text: bytes, incidents: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(text)
    _, document, _ = answer(capsys, path)
    assert [(each["rule"], each["severity"]) for each in document["incidents"]] == incidents


def test_the_zone_and_the_labels_of_the_command_line_count(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document, _ = answer(capsys, log, "--tz", "Asia/Seoul", "--label", "cluster=prod")
    (incident,) = document["incidents"]
    assert incident["first_seen"] == "2023-02-02T17:05:02.285Z"
    assert incident["labels"]["cluster"] == "prod"


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (("--tz", "Seoul"), "--tz takes a zone such as"),
        (("--label", "prod"), "--label takes key=value, not: prod"),
        (("--roster", "a"), "--roster takes broker ids"),
        (("--format", "xml"), "--format"),
    ],
)
def test_a_wrong_option_is_exit_2(
    log: Path, option: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", str(log), *option]) == 2
    assert sentence in capsys.readouterr().err


def test_a_declared_broker_that_was_never_heard_from_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    story = Path(__file__).parents[4] / "samples" / "4-silent-broker"
    _, document, _ = answer(capsys, story / "broker-2", story / "broker-3", "--roster", "1,2,3")
    told = [(incident["rule"], incident["labels"]["broker"]) for incident in document["incidents"]]
    assert told == [("broker-silent", "1")]


def test_what_cannot_be_judged_is_listed_and_the_exit_code_says_so(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.open("ab") as file:
        file.write(b"[2023-02-03 02:06:02,285] ERROR cursed password=hunter22 (x.Y)\n")
    decode_block = by_line.decode_block

    def failing(block: Block, formats: Any) -> Any:
        if "cursed" in block.records[0].text:
            raise ArithmeticError("no")
        return decode_block(block, formats)

    monkeypatch.setattr(by_line, "decode_block", failing)
    code, document, err = answer(capsys, log)
    assert (code, rules_of(document)) == (3, [RULE])
    (letter,) = document["quarantined"]
    assert (letter["stage"], letter["number"], letter["error"]) == ("decode", 3, "ArithmeticError: no")
    assert "hunter22" not in json.dumps(document)
    assert f"1 line of '{log}' at line 3 in quarantine (decode): ArithmeticError: no" in err


def test_an_error_that_cannot_be_grouped_ends_no_scan(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.open("ab") as file:
        file.write(UNKNOWN)

    def failing(*_: object) -> None:
        raise ArithmeticError("no")

    monkeypatch.setattr("engine.cli.unknown.UnknownEvents._drain", failing)
    code, document, _ = answer(capsys, log)
    assert (code, rules_of(document)) == (3, [RULE])
    assert [letter["stage"] for letter in document["quarantined"]] == ["observe"]


def test_stamps_out_of_bounds_are_counted_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "go.log").write_bytes(TROUBLE.replace(b"2023-02-03", b"0001-01-01") + QUIET.replace(b"2023", b"9999"))
    code, document, _ = answer(capsys, tmp_path / "go.log")
    assert (code, rules_of(document)) == (1, [RULE])
    assert document["incidents"][0]["first_seen"] is None
    (note,) = document["notes"]
    assert note.startswith(f"'{tmp_path / 'go.log'}': 2 stamps are out of bounds")


def test_how_the_input_was_read_is_told_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "connect.log"
    log.write_bytes(QUIET * 200 + TROUBLE)
    _, _, err = answer(capsys, log, "--stats", "--audit")
    assert "202 lines read one by one" in err
    assert "nothing was audited" in err
    monkeypatch.setattr(bounded, "COLUMNS_FROM_BYTES", 0)
    code, document, err = answer(capsys, log, "--stats", "--audit")
    assert (code, rules_of(document)) == (1, [RULE])
    assert "202 lines read in columns: 200 events decided by them, 1 (0.50%) by the reference" in err
    assert "1 block also read by the reference: no difference" in err


def test_a_scan_of_strangers_is_audited_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "connect.log").write_bytes(QUIET * 200 + TROUBLE)
    (tmp_path / "other.log").write_bytes(b"[2019-02-03 02:05:02,285] INFO nothing to see (x.Y)\n" * 200)
    monkeypatch.setattr(bounded, "COLUMNS_FROM_BYTES", 0)
    _, document, err = answer(capsys, tmp_path, "--audit")
    assert any("judged apart" in note or "nothing to do" in note for note in document["notes"]), document["notes"]
    assert "also read by the reference: no difference" in err


def test_a_difference_that_the_audit_finds_is_no_clean_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "connect.log"
    log.write_bytes((QUIET + TROUBLE) * 50)
    monkeypatch.setattr(bounded, "COLUMNS_FROM_BYTES", 0)
    monkeypatch.setattr("engine.columns.classes.Classes._may_match", lambda *_: False)
    code, _, err = answer(capsys, log, "--audit")
    assert code == 3
    assert "columns and the reference differ" in err


def test_a_report_as_one_page_needs_nothing_else(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["scan", str(log), "--html", str(page)]) == 1
    assert "max.request.size" in capsys.readouterr().out, "the report is printed all the same"
    text = page.read_text(encoding="utf-8")
    assert text.count('<svg xmlns="http://www.w3.org/2000/svg" class="picture"') == 2, "for wide and for narrow windows"
    assert "producer.max.request.size" in text and "RecordTooLargeException" in text
    assert all(address.startswith("https://") for address in re.findall(r'href="([^"#][^"]*)"', text)), "links lead on"
    assert " src=" not in text, "nothing is loaded"
    assert "<link" not in text and "url(http" not in text and "@import" not in text


def test_the_report_has_the_lines_around_its_evidence_without_secrets(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    log.write_bytes(b"[2023-02-03 02:05:01,000] INFO token=hunter2hunter2 <b> (x)\n" + log.read_bytes())
    main(["scan", str(log), "--html", str(page)])
    text = page.read_text(encoding="utf-8")
    (around, *_) = re.findall(r'<pre class="around".*?</pre>', text, re.DOTALL)
    assert "02:05:01,000] INFO token=[redacted] &lt;b&gt; (x)\n" in around
    assert "<strong>" in around and "hunter2" not in text


def test_every_mark_of_the_page_leads_to_something_on_it(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    main(["scan", str(log), "--html", str(page)])
    text = page.read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets and targets <= set(ids)


def test_a_page_of_a_clean_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "quiet.log").write_bytes(QUIET)
    assert main(["scan", str(tmp_path / "quiet.log"), "--html", str(tmp_path / "report.html")]) == 0
    assert "<h1>Nothing found in " in (tmp_path / "report.html").read_text()


def test_a_page_that_cannot_be_written_is_said(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(log), "--html", str(tmp_path / "missing" / "report.html")]) == 2
    out, err = capsys.readouterr()
    assert "the report cannot be written there (No such file or directory)" in err
    assert "max.request.size" in out, "the report is printed all the same"


def test_a_report_as_markdown(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(log), "--format", "markdown"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("# 1 incident: 1 critical.") and "### Timeline" in out


def test_a_page_needs_no_package_of_the_store_or_of_a_server(log: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules |= dict.fromkeys(('sqlalchemy', 'starlette', 'uvicorn', 'pyspark'));"
        "from engine.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    page = tmp_path / "report.html"
    done = subprocess.run([sys.executable, "-c", code, "scan", str(log), "--html", str(page)], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
    assert page.exists()


def test_values_of_the_installation_fill_in_the_commands(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["scan", str(log)])
    assert "${connect_url:?}: scan --bootstrap HOST:PORT" in " ".join(capsys.readouterr().out.split())
    given = ("--bootstrap", "kafka-9:9092", "--connect-url", "http://connect-9:8083")
    (tmp_path / "tocsin.yml").write_text(
        "sources: [{type: files, paths: [a]}]\nclusters: {prod: {bootstrap: 'kafka-9:9092', connect_url: 'http://connect-9:8083'}}\n"
    )
    for arguments in (given, ("-c", str(tmp_path / "tocsin.yml"), "--label", "cluster=prod")):
        main(["scan", str(log), *arguments])
        out = capsys.readouterr().out
        assert "--bootstrap-server kafka-9:9092" in out
        assert "http://connect-9:8083/connectors" in out
        assert "Fill in" not in out


def test_ctrl_c_reports_what_was_found_until_then(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.cli.main", "scan", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(TROUBLE * 2000)  # more than a pipe holds: when all is written, it is being read
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130, err
    assert b"was stopped: what was not read by then is not judged" in b" ".join(out.split())
    assert b"Traceback" not in err
