"""What a check says of receivers; nothing is sent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from engine.cli.checking.outcomes import CheckOutcome
from engine.cli.checking.receivers import checked_receivers
from engine.config import load
from tests.standins.slack import SlackStandIn
from tests.unit.connectors.answering import Answer, Asked, answering


def checked(folder: Path, receivers: str) -> list[tuple[str, CheckOutcome, str]]:
    (folder / "tocsin.yml").write_text(f"sources: [{{type: files, paths: [a.log]}}]\nreceivers: {receivers}\n")
    return [(item.name, item.outcome, item.sentence) for item in checked_receivers(load(folder / "tocsin.yml"))]


def test_every_receiver_without_its_secret_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GONE_ONE", raising=False)
    two = "[{name: a, slack: {channel: '#x', token: 'env:GONE_ONE'}}, {name: b, slack: {webhook_url: 'file:gone'}}]"
    rows = checked(tmp_path, two)
    assert [row[:2] for row in rows] == [("a", CheckOutcome.WRONG), ("b", CheckOutcome.WRONG)]
    assert rows[0][2] == "env:GONE_ONE: the environment variable GONE_ONE is not set"


def test_webhooks_are_reached_and_sent_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SlackStandIn() as slack, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("HOOK", slack.webhook_url)
        rows = checked(
            tmp_path,
            f"[{{name: a, webhook: {{url: '{slack.address}/hook'}}}}, {{name: b, slack: {{webhook_url: 'env:HOOK'}}}},"
            f" {{name: c, webhook: {{url: 'http://127.0.0.1:{closed.getsockname()[1]}'}}}}, {{name: d, terminal: {{}}}}]",
        )
        assert (slack.messages, slack.hooks) == ([], [])
    outcomes = [CheckOutcome.OK, CheckOutcome.WARNING, CheckOutcome.FAILED, CheckOutcome.OK]
    assert [outcome for _, outcome, _ in rows] == outcomes


def test_indices_are_looked_at_and_not_created(tmp_path: Path) -> None:
    requests: list[Asked] = []

    def answered(request: Asked) -> Answer:
        requests.append(request)
        return Answer({"error": {"type": "index_not_found_exception"}}, 404)

    with answering(answered) as server:
        ((_, outcome, sentence),) = checked(tmp_path, f"[{{name: es, elasticsearch: {{url: '{server.url}'}}}}]")
    assert (outcome, "tocsin-incidents will be created; nothing was written" in sentence) == (CheckOutcome.OK, True)
    assert {request.method for request in requests} == {"GET"}
    with answering(lambda request: Answer({"error": {"reason": "no"}}, 401)) as server:
        ((_, outcome, sentence),) = checked(tmp_path, f"[{{name: es, elasticsearch: {{url: '{server.url}'}}}}]")
    assert (outcome, "does not accept the credentials" in sentence) == (CheckOutcome.FAILED, True)
