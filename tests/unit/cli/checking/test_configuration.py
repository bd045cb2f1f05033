"""One run of `tocsin config check` finds everything that is wrong in a configuration and in what it names."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from engine.cli.checking.configuration import check_configuration
from engine.cli.main import main
from tests.standins.slack import TOKEN, SlackStandIn

GOOD = """
sources:
  - {type: files, paths: [logs], labels: {cluster: prod}}
receivers:
  - {name: ops, slack: {channel: "#kafka-ops", token: "env:TOCSIN_TEST_TOKEN", base_url: "%s"}}
web: {listen: "127.0.0.1:0"}
"""
WRONG = """
clusters:
  prdo: {bootstrap: "kafka-1:9092"}
sources:
  - {type: files, paths: [nothing-here], labels: {cluster: prod}, timezone: Asia/Seul}
  - {type: files, paths: [logs], start: yesterday, may_speak_for: [brokr]}
  - {type: kafka, bootstrap_servers: "127.0.0.1:%(closed)d", topics: [logs.kafka], options: {isolation.level: read_committed}}
roster: [1, 2, 3]
overrides:
  broker-silnt: {severity: low}
route:
  receiver: ops
  repeat_intervall: 4h
  routes:
    - {matchers: [compnent=connect], receiver: ops}
    - {matchers: ['component="conect"'], receiver: ops}
    - {matchers: [severity=hihg], receiver: ops}
    - {matchers: [rule=broker-silnt], receiver: pgaer}
    - {matchers: [cluster=prod], group_wait: soon}
    - {matchers: [cluster=prod, severity=critical], receiver: hook, mute_time_intervals: [nihgts]}
    - {matchers: [topic=a, topic=b], receiver: web}
    - {matchers: [severity=low], continue: true, receiver: ops}
time_intervals:
  - {name: nights, time_intervals: [{weekdays: [noday]}]}
receivers:
  - {name: ops, slack: {channel: "#kafka-opps", token: "env:TOCSIN_TEST_TOKEN", base_url: "%(slack)s"}}
  - {name: hook, slack: {webhook_url: "env:TOCSIN_TEST_NOWHERE"}}
  - {name: web, webhook: {url: "http://127.0.0.1:%(closed)d/in"}}
  - {name: spare, terminal: {}}
store: sqlite:////proc/self/tocsin.db
spark: {cores: many}
web: {listen: "0.0.0.0:8320"}
"""
MISTAKES = [  # what is planted above, and a part of the sentence about it
    "no source belongs to the cluster `prdo`",
    "nothing-here: there is no such file",
    "`Asia/Seul` is not a time zone",
    "`yesterday` is not a start",
    "there is no component `brokr`",
    "no broker of 127.0.0.1",
    "`isolation.level` cannot be set here",
    "unknown key `roster`",
    "there is no rule `broker-silnt` to override",
    "unknown key `repeat_intervall`",
    "no incident has a label `compnent`",
    "no incident has `component` with the value `conect`",
    "`severity=hihg` fits no severity",
    "no incident has `rule` with the value `broker-silnt`",
    "there is no receiver `pgaer`",
    "`soon` is not a duration",
    'never reached: the route for `cluster="prod"` in line 19',
    "there is no time interval `nihgts`",
    "never reached: its matchers exclude each other",
    "`continue` has no effect",
    "`noday` is not a day of the week",
    "no route uses the time interval `nights`",
    "there is no channel #kafka-opps that the app can see; did you mean #kafka-ops?",
    "the environment variable TOCSIN_TEST_NOWHERE is not set",
    "the webhook cannot be reached (ConnectionRefusedError)",
    "nothing is ever sent to the receiver `spare`",
    "cannot be created: /proc/self",
    "`many` is not a whole number",
    "can be reached from other machines",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOCSIN_TEST_TOKEN", TOKEN)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text("[2026-01-01 00:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    return tmp_path


def test_everything_that_is_wrong_is_found_in_one_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as closed, SlackStandIn() as slack:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        (folder / "tocsin.yml").write_text(WRONG % {"closed": closed.getsockname()[1], "slack": slack.base_url})
        code = main(["config", "check", "-c", str(folder / "tocsin.yml")])
        assert not slack.messages
    out = capfd.readouterr().out
    assert [mistake for mistake in MISTAKES if mistake not in out] == [], out
    assert len(MISTAKES) >= 25
    assert code == 2
    assert TOKEN not in out
    assert not (folder / ".tocsin").exists()


def test_a_good_configuration_passes_and_leaves_nothing_behind(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with SlackStandIn() as slack:
        (folder / "tocsin.yml").write_text(GOOD % slack.base_url)
        code = main(["run", "--dry-run", "-c", str(folder / "tocsin.yml")])
    out = capfd.readouterr().out
    assert code == 0, out
    assert out.endswith("tocsin.yml: nothing is wrong\n")
    assert sorted(path.name for path in folder.iterdir()) == ["logs", "tocsin.yml"]


def test_offline_asks_nobody_and_json_has_the_same(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "tocsin.yml").write_text(GOOD.replace("cluster: prod", "clutser: prod") % "http://127.0.0.1:1/api/")
    code = main(["config", "check", "-c", str(folder / "tocsin.yml"), "--offline", "--format", "json"])
    answer = json.loads(capfd.readouterr().out)
    assert (code, answer["exit_code"], answer["findings"]) == (0, 0, [])
    assert {check["area"] for check in answer["checks"]} == {"rules", "routes"}


def test_rules_that_do_not_load_are_reported_beside_the_rest(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "bad.yml").write_text("id: bad\n")
    (folder / "tocsin.yml").write_text("sources: [{type: files, paths: [logs]}]\nrules: [builtin, mine]\nnonsense: 1\n")
    check = check_configuration(folder / "tocsin.yml", offline=True)
    assert {finding.code for finding in check.findings} >= {"TOC201", "TOC202"}
    assert check.exit_code == 2


def test_a_file_that_is_no_yaml_is_one_finding(folder: Path) -> None:
    (folder / "tocsin.yml").write_text("sources: [\n")
    check = check_configuration(folder / "tocsin.yml")
    assert (len(check.findings), check.items, check.exit_code) == (1, (), 2)
