"""Receivers of type pagerduty, alertmanager, email and teams: what is read, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import AlertmanagerSettings, EmailSettings, PagerDutySettings, Secret, TeamsSettings, load
from engine.errors import ConfigError

LEAST = "sources: [{type: files, paths: [a.log]}]\n"
RECEIVER = "receivers:\n  - {{name: ops, {}}}\n"
PROTOCOLS = """
receivers:
  - {name: pager, pagerduty: {routing_key: "file:keys/pagerduty", base_url: "https://events.eu.pagerduty.com/"}}
  - {name: alerts, alertmanager: {url: "http://alerts:9093", user: tocsin, password: "env:ALERTS", resolve_timeout: 5m}}
  - {name: mail, email: {to: [oncall@kafka.example, Ops <ops@kafka.example>], from: tocsin@kafka.example, smtp: "mail.example"}}
  - {name: v6, email: {to: oncall@kafka.example, from: a@b.example, smtp: "[::1]:2525", tls: none}}
  - {name: teams, teams: {webhook_url: "env:TEAMS"}}
"""


def test_receivers_by_open_protocols(tmp_path: Path) -> None:
    pager, alerts, mail, v6, channel = load(written(tmp_path, LEAST + PROTOCOLS)).receivers
    assert pager == PagerDutySettings("pager", Secret("file", f"{tmp_path}/keys/pagerduty"), "https://events.eu.pagerduty.com/")
    assert alerts == AlertmanagerSettings("alerts", "http://alerts:9093", None, "tocsin", Secret("env", "ALERTS"), 300.0)
    recipients = ("oncall@kafka.example", "Ops <ops@kafka.example>")
    assert mail == EmailSettings("mail", recipients, "tocsin@kafka.example", "mail.example", 587, "starttls", "", None)
    assert (v6.destination, channel) == ("oncall@kafka.example by ::1:2525", TeamsSettings("teams", Secret("env", "TEAMS")))


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("email: {to: x, from: a@b.example, smtp: m}", "`x` is not a mail address"),
        ("email: {to: [], from: a@b.example, smtp: m}", "`to` needs at least one address"),
        (
            "email: {to: a@b.example, from: a@b.example, smtp: 'm:x'}",
            "is not the address of a mail server",
        ),
        ("email: {to: a@b.example, from: a@b.example, smtp: m, tls: ssl}", "not a kind of encryption"),
        ("email: {to: a@b.example, from: a@b.example, smtp: m, user: u}", "needs both `user` and"),
        ("pagerduty: {routing_key: R0secret}", "must not hold the secret itself"),
        ("pagerduty: {routing_key: env:K, base_url: http://x.example}", "may be sent a secret"),
        ("teams: {webhook_url: https://flow.example/?sig=x}", "must not hold the secret itself"),
        ("alertmanager: {url: http://a:9093, token: env:T, user: u, password: env:P}", "needs either"),
        ("alertmanager: {url: http://a:9093, resolve_timeout: 30s}", "`resolve_timeout` is too short"),
    ],
)
def test_mistakes_are_said_plainly(tmp_path: Path, text: str, finding: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, LEAST + RECEIVER.format(text)))
    (one,) = caught.value.diagnostics
    assert finding in one.message


def written(folder: Path, text: str) -> Path:
    path = folder / "tocsin.yml"
    path.write_text(text, encoding="utf-8")
    return path
