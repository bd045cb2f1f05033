"""`tocsin receivers`: which receivers there are, and whether a message reaches them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.standins.alertmanager import AlertmanagerStandIn
from tests.standins.mail import MailStandIn
from tests.standins.pagerduty import ROUTING_KEY, PagerDutyStandIn
from tests.standins.slack import TOKEN, SlackStandIn
from tests.standins.slack_socket import APP_TOKEN, SlackWithPeople
from tests.standins.teams import TeamsStandIn

CONFIG = """
sources:
  - {type: files, paths: [a.log]}
route:
  receiver: screen
  routes: [{matchers: ['component="connect"'], receiver: data, group_wait: 5s}]
receivers:
  - {name: screen, terminal: {}}
  - {name: data, slack: {channel: "#kafka-ops", token: "env:TOCSIN_TEST_TOKEN", base_url: "BASE"}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(CONFIG.replace("BASE", "http://localhost:1/api/"))
    return path


def test_receivers_are_listed_without_their_secrets(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
    assert main(["receivers", "list", "-c", str(config)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == ["screen  terminal", "data    slack     #kafka-ops by env:TOCSIN_TEST_TOKEN"]


def test_a_test_message_reaches_its_receiver(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["receivers", "test", "screen", "-c", str(config)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["receivers", "test", "data", "-c", str(config)]) == 2
    assert "receiver data: env:TOCSIN_TEST_TOKEN: the environment variable" in capsys.readouterr().err
    with SlackStandIn() as server:
        config.write_text(CONFIG.replace("BASE", server.base_url))
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", "wrong")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 3
        assert "data: rejected (Slack says invalid_auth; check the token" in capsys.readouterr().out
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert capsys.readouterr().out == "data: delivered\n"
        assert len(server.parents()) == 1
        server.script("chat.postMessage", "invalid_blocks")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert "delivered (Slack refused its blocks (invalid_blocks), so it was sent as text)" in capsys.readouterr().out
        server.granted.remove("channels:history")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        delivery, advice = capsys.readouterr().out.splitlines()
        assert delivery == "data: delivered"
        assert advice.startswith(
            "data: the app has no scope channels:history: in a public channel a message whose answer was lost"
        )
        server.script("auth.test", "page:403")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert capsys.readouterr().out == "data: delivered\n", "what cannot be asked is not told as missing"


def test_what_an_app_lacks_for_buttons_is_told(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with SlackWithPeople() as server:
        text = CONFIG.replace("BASE", server.base_url).replace('token: "env', 'app_token: "env:TOCSIN_TEST_APP", token: "env')
        config.write_text(text)
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
        monkeypatch.setenv("TOCSIN_TEST_APP", APP_TOKEN)
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert capsys.readouterr().out == "data: delivered\n"
        assert [block["type"] for block in server.parents()[0]["blocks"]].count("actions") == 0, "there is nothing to act on"
        server.script("blocks.validate", "invalid_blocks")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        assert capsys.readouterr().out.splitlines()[1] == "data: Slack refuses tables (invalid_blocks): a storm is sent as text"
        server.script("blocks.validate", "unknown_method")
        server.granted.remove("commands")
        monkeypatch.setenv("TOCSIN_TEST_APP", "xapp-wrong")
        assert main(["receivers", "test", "data", "-c", str(config)]) == 0
        _, missing, refused = capsys.readouterr().out.splitlines()
        assert missing == "data: the app has no scope commands: there is no /tocsin in Slack"
        assert refused.startswith("data: Slack refuses app_token (invalid_auth): buttons and /tocsin do nothing")


PROTOCOLS = """
sources:
  - {type: files, paths: [a.log]}
receivers:
  - {name: pager, pagerduty: {routing_key: "env:TOCSIN_TEST_KEY", base_url: "PAGERDUTY"}}
  - {name: alerts, alertmanager: {url: "ALERTS", token: "env:TOCSIN_TEST_TOKEN"}}
  - {name: mail, email: {to: oncall@kafka.example, from: tocsin@kafka.example, smtp: "127.0.0.1:PORT", tls: none}}
  - {name: channel, teams: {webhook_url: "env:TOCSIN_TEST_HOOK"}}
"""


def test_every_protocol_is_listed_and_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagerDutyStandIn() as pager, AlertmanagerStandIn() as alerts, MailStandIn() as mail, TeamsStandIn() as workflow:
        path = tmp_path / "tocsin.yml"
        text = PROTOCOLS.replace("PAGERDUTY", pager.address).replace("ALERTS", alerts.address).replace("PORT", str(mail.port))
        path.write_text(text)
        monkeypatch.setenv("TOCSIN_TEST_KEY", ROUTING_KEY)
        monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
        monkeypatch.setenv("TOCSIN_TEST_HOOK", workflow.webhook_url)
        assert main(["receivers", "list", "-c", str(path)]) == 0
        listed = capsys.readouterr().out
        assert "pager    pagerduty     by env:TOCSIN_TEST_KEY" in listed
        assert f"mail     email         oncall@kafka.example by 127.0.0.1:{mail.port}" in listed
        for name in ("pager", "alerts", "mail", "channel"):
            assert main(["receivers", "test", name, "-c", str(path)]) == 0
            assert capsys.readouterr().out == f"{name}: delivered\n"
        assert [event["event_action"] for event in pager.events] == ["trigger", "resolve"], "a test must not stay a page"
        assert len(alerts.active()) == 1
        assert alerts.active(datetime.now(UTC) + timedelta(seconds=61)) == []
        assert "nothing is wrong" in str(mail.messages[0]["Subject"])
        assert len(workflow.cards) == 1
        assert alerts.headers[0]["Authorization"] == f"Bearer {TOKEN}"


def test_an_unknown_receiver_names_the_known_ones(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receivers", "test", "nobody", "-c", str(config)]) == 2
    assert "there is no receiver `nobody`; known: screen, data" in capsys.readouterr().err
