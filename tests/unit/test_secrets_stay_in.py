"""No planted secret reaches any output: what a scan prints, its JSON, messages, pages, the file of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.slack.message import parent
from connectors.webhook import WebhookReceiver
from engine.cli.answer import document
from engine.cli.authoring.drafting import draft_rule, shipped_logs
from engine.cli.authoring.explaining import explain
from engine.cli.html_report import render_html
from engine.cli.main import main
from engine.cli.markdown import render_markdown
from engine.cli.overview import render_triage
from engine.cli.triage import triage
from engine.model.answers import incident_value
from engine.model.links import NO_LINKS
from engine.model.notifications import Notification, Reason
from engine.model.records import Progress, RawLine
from engine.model.rules import Plan
from engine.pipeline import replay
from engine.ports import Chunk
from engine.store import Store
from engine.store.store import BatchId
from engine.web.export import write_pages
from tests.rulepack.playing import plan
from tests.unit.match.secret_grammar import PLACED, telling

NOW = datetime(2022, 1, 2, tzinfo=UTC)
RULE = "connect-task-killed"
# a rule knows the first of these events, and none the second
EVENTS = (
    "[2022-01-01 00:{minute:02d}:00,000] ERROR WorkerSinkTask{{id=c{minute}-0}} Task threw an uncaught and unrecoverable"
    " exception."
    " Task is being killed and will not recover until manually restarted (org.apache.kafka.connect.runtime.WorkerTask)\n"
    "org.apache.kafka.connect.errors.ConnectException: {told}\n"
    "\tat org.apache.kafka.connect.runtime.WorkerSinkTask.execute(WorkerSinkTask.java:200)\n"
    "[2022-01-01 00:{minute:02d}:30,000] ERROR nobody knows this: {told} (org.example.Orders)\n"
)


@cache
def rules() -> Plan:
    return plan()


def log_of(texts: Sequence[str]) -> str:
    return "".join(EVENTS.format(minute=minute, told=text) for minute, text in enumerate(texts))


def outputs(log: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of everything that is shown or kept of `log`."""
    data = log.encode()
    scanned = triage([Chunk("a.log", 0, data, 1, None, {}), Progress("a.log", len(data), len(data), True)], rules(), [])
    assert scanned.incidents
    assert scanned.unknown
    yield "stdout", render_triage(scanned, 100).plain
    yield "json", json.dumps(document(scanned), ensure_ascii=False)
    yield "markdown", render_markdown(scanned)
    yield "html", render_html(scanned, NOW)
    store = Store.open(f"sqlite:///{folder}/tocsin.db")
    lines = [RawLine("a.log", at, line, at, None, {}) for at, line in enumerate(data.splitlines(), 1)]
    with store.batch(BatchId("q", 1)) as ledger:
        incidents = list(replay([*lines, Progress("a.log", 10**6, 10**6, True)], rules(), ledger))
        ledger.put_incidents(incidents)
    write_pages(store, folder / "pages", NOW, NO_LINKS)
    store.close()
    for incident in incidents:
        message = parent(incident, ())
        yield "slack", json.dumps([message.text, message.blocks], ensure_ascii=False)
        notification = Notification(incident, Reason.OPENED, incident.title)
        yield "webhook", (WebhookReceiver("http://127.0.0.1/", incident_value)._request(notification).data or b"").decode()
    for path in (path for path in folder.rglob("*") if path.is_file()):
        yield path.name, path.read_bytes().decode("utf-8", "replace")


def leaks(log: str, secret: str) -> list[tuple[str, str]]:
    """Return where `secret` is found in what is shown or kept of `log`."""
    with TemporaryDirectory() as folder:
        found = [(name, text, text.find(secret)) for name, text in outputs(log, Path(folder))]
    assert len({name for name, _, _ in found}) > 6
    return [(name, text[max(0, at - 80) : at + 20]) for name, text, at in found if at >= 0]


@pytest.mark.parametrize("start", range(0, len(PLACED), 25))
def test_no_output_holds_what_a_place_gives_away(start: int) -> None:
    texts = [placed.format(secret=f"ZQ7x{at}Secret") for at, placed in enumerate(PLACED[start : start + 25])]
    assert leaks(log_of(texts), "ZQ7x") == []


@settings(max_examples=settings().max_examples // 10, deadline=None)
@given(st.lists(telling(), min_size=8, max_size=16))
def test_no_output_holds_a_planted_secret(planted: list[tuple[str, str]]) -> None:
    log = log_of([text for text, _ in planted])
    assert [leak for _, secret in planted[:1] for leak in leaks(log, "ZQ7")] == []


def test_a_draft_of_a_rule_holds_no_secret_and_fires_on_the_line_that_had_it(tmp_path: Path) -> None:
    line = "[2022-01-01 00:00:00,000] ERROR Cannot log in to shop, password=ZQ7xSecret for topic orders-eu (org.example.Orders)"
    draft = draft_rule(line, rules(), "", min(shipped_logs().iterdir()))
    assert "ZQ7" not in draft.text
    assert "password=[redacted] for topic" in draft.text, "the tests of the rule show what is hidden"
    (tmp_path / f"{draft.id}.yml").write_text(draft.text, encoding="utf-8")
    (tmp_path / "a.log").write_text(f"{line}\n", encoding="utf-8")
    assert main(["rules", "explain", draft.id, str(tmp_path / "a.log"), "--rules", str(tmp_path)]) == 1


@pytest.mark.parametrize("told", ["password=ZQ7xSecret", "https://u:p@ZQ7x@h/", '{"token":"ZQ7xSecret"}'])
def test_an_explanation_holds_no_secret(told: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log_of([told]), encoding="utf-8")
    for rule in (*list(rules().rules())[:8], RULE):
        explanation = explain(rule, rules(), [str(tmp_path / "a.log")])
        assert "ZQ7" not in "\n".join(explanation.lines(10)), rule
        assert "ZQ7" not in json.dumps(explanation.as_json(10), default=str), rule


def test_a_scan_hides_what_its_configuration_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tocsin.yml").write_text(
        "sources: [{type: files, paths: [a.log]}]\nredact: {phone: true, email: false, patterns: ['EMP-[0-9]+']}\n"
    )
    (tmp_path / "a.log").write_text(log_of(["EMP-4711 jane@example.com 010-1234-5678"]), encoding="utf-8")
    main(["scan", str(tmp_path / "a.log")])
    before = capsys.readouterr().out
    assert "EMP-4711" in before
    assert "010-1234-5678" in before
    assert "jane@" not in before
    main(["scan", str(tmp_path / "a.log"), "-c", str(tmp_path / "tocsin.yml")])
    after = capsys.readouterr().out
    assert "EMP-4711" not in after
    assert "010-1234-5678" not in after
    assert "jane@example.com" in after
