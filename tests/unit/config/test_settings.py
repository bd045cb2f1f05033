"""tocsin.yml: what is right becomes settings, what is wrong is told all at once with its place."""

from pathlib import Path

import pytest

from connectors.files import LabelError, check_label
from connectors.kafka import check_label as wrong_kafka_label
from connectors.kafka import check_option as wrong_option
from engine.config import (
    Checks,
    ElasticsearchSettings,
    Secret,
    SlackSettings,
    TerminalSettings,
    WebhookSettings,
    WebSettings,
    load,
)
from engine.config.receivers import SLACK_API
from engine.dsl import Override
from engine.errors import ConfigError, UsageError
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.links import NO_LINKS, Kibana, LinkTargets
from engine.model.records import NOBODY, SPEAKS_FOR
from engine.model.routes import Hours, LabelMatcher, Route, TimeInterval, TimeSpan, Timings

FULL = r"""
clusters:
  prod: {brokers: [1, 2, 3], bootstrap: "kafka-1:9092", connect_url: "http://connect:8083"}
sources:
  - {type: files, paths: ["logs/broker-*/server.log*", /var/log/kafka], labels: {cluster: prod, broker: "{path:broker-(\\d+)}"}}
  - {type: files, paths: [connect.log], timezone: Asia/Seoul, start: 2h}
rules: [builtin, ./my-rules]
overrides: {broker-silent: {severity: low}, other: {disabled: true}}
route:
  receiver: screen
  group_wait: 10s
  routes:
    - {matchers: ['component="connect"', severity=~"high|critical"], receiver: data, repeat_interval: 1h, continue: true}
    - {matchers: [cluster=prod], group_wait: 0s, mute_time_intervals: [nights], active_time_intervals: [ends]}
receivers:
  - {name: screen, terminal: {}}
  - {name: data, slack: {channel: "#2339_데이터_모니터링", token: "file:secrets/slack"}}
  - {name: page, webhook: {url: "https://page.example/in", token: "env:PAGE_TOKEN"}}
  - {name: hook, slack: {webhook_url: "env:HOOK"}}
store: "sqlite:///state/tocsin.db"
notify_max_age: 2h
notify_storm: 12
retention: 30d
time_intervals:
  - name: nights
    time_intervals:
      - {times: [{start_time: "22:00", end_time: "24:00"}], weekdays: [Monday:friday, sunday], location: Asia/Seoul}
  - name: ends
    time_intervals: [{days_of_month: [1:5, -3:-1, 20:-1], months: [january:march, 12], years: [2026:2027]}]
spark: {cores: 4, partitions: 2, heap: 2g, trigger: 500ms, audit: true}
web: {listen: "[::1]:9000", public_url: "https://tocsin.example/"}
kibana: {url: "https://kibana.example/base/", version: "8.14", data_view: logs, space: ops, fields: {broker: labels.broker}}
"""
KAFKA = r"""
sources:
  - type: kafka
    bootstrap_servers: "k1:9092,k2:9092"
    topics: [logs.kafka, logs.connect]
    labels: {cluster: prod, broker: "{key:broker-(\\d+)}"}
    timezone: Asia/Seoul
    start: latest
    options: {security.protocol: SASL_SSL, session.timeout.ms: 6000,
      sasl.password: env:KAFKA_PASSWORD, ssl.key.password: file:key}
"""
INTERVAL = "sources:\n  - {type: files, paths: [a.log]}\ntime_intervals: [{name: a, time_intervals: [{%s}]}]\n"
LEAST = "sources:\n  - {type: files, paths: [a.log]}\n"
ARCHIVE = LEAST + "receivers: [{name: es, elasticsearch: {%s}}]\n"


def wrong_label(template: str) -> str | None:
    try:
        check_label(template)
    except LabelError as error:
        return str(error)
    return None


NIGHTS = TimeInterval("nights", (TimeSpan(((1320, 1440),), ((1, 5), (0, 0)), zone="Asia/Seoul"),))
ENDS = TimeInterval("ends", (TimeSpan(days=((1, 5), (-3, -1), (20, -1)), months=((1, 3), (12, 12)), years=((2026, 2027),)),))
HOURS = Hours((NIGHTS,), (ENDS,))
CHECKS = Checks({"files": wrong_label, "kafka": wrong_kafka_label}, {"kafka": wrong_option})


def written(folder: Path, text: str) -> Path:
    (path := folder / "tocsin.yml").write_text(text)
    return path


def findings(folder: Path, text: str) -> list[str]:
    path = written(folder, text)
    with pytest.raises(ConfigError) as caught:
        load(path, CHECKS)
    return [d.one_line().removeprefix(f"{path}:") for d in caught.value.diagnostics]


def test_a_full_configuration_becomes_settings_with_paths_relative_to_its_folder(tmp_path: Path) -> None:
    settings = load(written(tmp_path, FULL), CHECKS)
    brokers, connect = settings.sources
    assert brokers.paths == (f"{tmp_path}/logs/broker-*/server.log*", "/var/log/kafka")
    assert brokers.labels == {"cluster": "prod", "broker": r"{path:broker-(\d+)}"}
    assert (brokers.scope, connect.scope) == ("prod", "default")
    assert (connect.labels, connect.start) == ({"timezone": "Asia/Seoul"}, "2h")
    assert settings.rules == (None, tmp_path / "my-rules")
    assert settings.overrides == {"broker-silent": Override(severity="low"), "other": Override(disabled=True)}
    assert settings.context == {
        "prod.bootstrap": "kafka-1:9092",
        "prod.connect_url": "http://connect:8083",
        "prod.brokers": "1,2,3",
    }
    assert settings.route == Route(
        "screen",
        timings=Timings(group_wait_s=10),
        routes=(
            Route(
                "data",
                (LabelMatcher("component", "=", "connect"), LabelMatcher("severity", "=~", "high|critical")),
                Timings(10, 300, 3600),
                goes_on=True,
            ),
            Route("screen", (LabelMatcher("cluster", "=", "prod"),), Timings(group_wait_s=0), hours=HOURS),
        ),
    )
    assert settings.receivers == (
        TerminalSettings("screen"),
        SlackSettings("data", "#2339_데이터_모니터링", Secret("file", f"{tmp_path}/secrets/slack"), None, SLACK_API),
        WebhookSettings("page", "https://page.example/in", Secret("env", "PAGE_TOKEN")),
        SlackSettings("hook", "", None, Secret("env", "HOOK"), SLACK_API),
    )
    assert settings.store.url == f"sqlite:///{tmp_path}/state/tocsin.db"
    assert settings.checkpoint == tmp_path / "state/tocsin.checkpoint"
    assert (settings.cores, settings.partitions, settings.heap, settings.trigger_s) == (4, 2, "2g", 0.5)
    assert settings.audited
    assert settings.web == WebSettings("::1", 9000, "https://tocsin.example", with_run=True)
    assert (settings.notify_max_age_s, settings.notify_storm) == (7200, 12)
    assert settings.retention_s == 30 * 86400
    kibana = Kibana("https://kibana.example/base", "logs", (8, 14), "ops", {"broker": "labels.broker"})
    assert settings.links == LinkTargets("https://tocsin.example", kibana)


def test_a_receiver_may_name_who_is_told_when_it_refuses(tmp_path: Path) -> None:
    chain = "[{name: a, fallback: b, terminal: {}}, {name: b, fallback: c, terminal: {}}, {name: c, terminal: {}}]"
    assert load(written(tmp_path, f"{LEAST}receivers: {chain}\n")).fallbacks == {"a": "b", "b": "c"}
    assert load(written(tmp_path, LEAST)).fallbacks == {}


@pytest.mark.parametrize(
    ("receivers", "sentence"),
    [
        (
            "[{name: a, fallback: b, terminal: {}}, {name: b, fallback: a, terminal: {}}]",
            "these fallbacks form a circle: a -> b -> a",
        ),
        ("[{name: a, fallback: a, terminal: {}}]", "these fallbacks form a circle: a -> a"),
        ("[{name: a, fallback: b, terminal: {}}]", "there is no receiver `b`"),
    ],
)
def test_a_fallback_leads_to_somebody_else(tmp_path: Path, receivers: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as wrong:
        load(written(tmp_path, f"{LEAST}receivers: {receivers}\n"))
    assert len(wrong.value.diagnostics) == 1


def test_one_source_is_enough(tmp_path: Path) -> None:
    settings = load(written(tmp_path, LEAST))
    assert settings.rules == (None,)
    assert (settings.route, settings.receivers) == (Route("terminal"), (TerminalSettings("terminal"),))
    assert settings.store.url == f"sqlite:///{tmp_path}/.tocsin/tocsin.db"
    assert settings.sources[0].start is None
    assert settings.web == WebSettings("127.0.0.1", 8320)
    assert settings.links == NO_LINKS
    assert (settings.notify_max_age_s, settings.notify_storm) == (None, 5)
    assert settings.retention_s == 90 * 86400


def test_every_error_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    text = r"""
sources:
  - {type: files, path: [a.log]}
  - {type: files, paths: [b.log], timezone: Asia/Seul, start: yesterday}
  - {type: docker, pods: ["kafka"], services: [kafka]}
  - {type: kafka, topics: [a b], bootstrap: "kafka-1:9092", timezone: Mars}
spark: {cores: two, colour: red}
"""
    assert findings(tmp_path, text) == [
        "3:5: error[TOC202]: `sources[0].paths` is missing",
        "3:19: error[TOC201]: unknown key `path`",
        "4:45: error[TOC705]: `sources[1].timezone` is wrong: `Asia/Seul` is not a time zone",
        "4:63: error[TOC704]: `sources[1].start` is wrong: `yesterday` is not a start",
        "5:20: error[TOC201]: unknown key `pods`",
        "6:5: error[TOC202]: `sources[3].bootstrap_servers` is missing",
        "6:28: error[TOC712]: `sources[3].topics[0]` is wrong: `a b` is not the name of a topic",
        "6:34: error[TOC201]: unknown key `bootstrap`",
        "6:71: error[TOC705]: `sources[3].timezone` is wrong: `Mars` is not a time zone",
        "7:16: error[TOC206]: `spark.cores` is wrong: `two` is not a whole number",
        "7:21: error[TOC201]: unknown key `colour`",
    ]


def test_a_source_that_knows_where_logs_lie_has_patterns_by_label(tmp_path: Path) -> None:
    text = r"""
sources:
  - {type: docker, containers: ["shop-*", "!shop-ui"], projects: [shop], services: [kafka], images: ["*/kafka:*"]}
  - {type: kubernetes, root: pods, namespaces: [kafka], pods: ["kafka-*"], labels: {cluster: prod}}
  - {type: journald, root: /host/var/log/journal, units: [kafka], timezone: Asia/Seoul, start: latest}
  - {type: docker}
"""
    docker, kubernetes, journal, default = load(written(tmp_path, text), CHECKS).sources
    assert docker.select == {
        "container": ("shop-*", "!shop-ui"),
        "compose_project": ("shop",),
        "compose_service": ("kafka",),
        "image": ("*/kafka:*",),
    }
    assert (kubernetes.root, kubernetes.scope) == (str(tmp_path / "pods"), "prod")
    assert kubernetes.select == {"namespace": ("kafka",), "pod": ("kafka-*",)}
    assert (journal.root, journal.select, journal.start) == ("/host/var/log/journal", {"unit": ("kafka",)}, "latest")
    assert journal.labels == {"timezone": "Asia/Seoul"}
    assert (default.root, default.select) == ("", {})


def test_a_kafka_source_has_its_cluster_topics_and_options(tmp_path: Path) -> None:
    (source,) = load(written(tmp_path, KAFKA), CHECKS).sources
    assert (source.type, source.bootstrap_servers, source.topics) == (
        "kafka",
        "k1:9092,k2:9092",
        ("logs.kafka", "logs.connect"),
    )
    assert source.labels == {"cluster": "prod", "broker": r"{key:broker-(\d+)}", "timezone": "Asia/Seoul"}
    assert source.options == {
        "security.protocol": "SASL_SSL",
        "session.timeout.ms": "6000",
        "sasl.password": "env:KAFKA_PASSWORD",
        "ssl.key.password": f"file:{tmp_path}/key",
    }
    assert (source.scope, source.start, source.paths) == ("prod", "latest", ())


def test_a_missing_key_of_a_kafka_source_is_explained_by_its_type(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, "sources:\n  - {type: kafka, topics: [a], bootstrap_server: k}\n"))
    missing, unknown = caught.value.diagnostics
    assert missing.help == "needed in a source of type kafka"
    assert unknown.help.startswith("did you mean `bootstrap_servers`?")


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (LEAST + "receivers:\n  - {name: ops, slak: {}}\n", "`slak` is not a type of receiver"),
        (LEAST + "receivers:\n  - {name: ops}\n", "needs exactly one type"),
        (LEAST + "receivers:\n  - {name: ops, slack: {channel: x}}\n", "needs either `channel` and `token`, or `webhook_url`"),
        (LEAST + "receivers:\n  - {name: ops, slack: {channel: x, token: xoxb-1}}\n", "must not hold the secret itself"),
        (
            LEAST + "receivers:\n  - {name: ops, slack: {channel: x, token: env:T, base_url: http://far.example/api/}}\n",
            "`http://far.example/api/` is not an address that may be sent a secret",
        ),
        (LEAST + "receivers:\n  - {name: ops, webhook: {url: ftp://x}}\n", "must be an http address without a password"),
        (LEAST + "receivers:\n  - {name: ops, webhook: {url: 'http://'}}\n", "must be an http address without a password"),
        (LEAST + "receivers:\n  - {name: ops, webhook: {url: 'http://x:99999/'}}\n", "must be an http address without"),
        (LEAST + 'receivers:\n  - {name: ops, webhook: {url: "http://x/\\r\\nY: z"}}\n', "must be an http address without"),
        (LEAST + "retention: 999999999d\n", "`999999999d` is not a duration"),
        (LEAST.replace("paths: [", "start: 999999999d, paths: ["), "`999999999d` is not a start"),
        (
            LEAST + "route: {receiver: terminal, routes: [{matchers: [severity=critcal]}]}\n",
            "`severity=critcal` fits no severity",
        ),
        (
            LEAST + "receivers:\n  - {name: ops, terminal: {}}\n  - {name: ops, terminal: {}}\n",
            "there is another receiver `ops`",
        ),
        (LEAST + "route: {receiver: terminal, group_by: [x]}\n", "`group_by` is not part of a route"),
        (LEAST + "route: {receiver: terminal, matchers: [a=b]}\n", "takes everything, so it has no `matchers`"),
        (LEAST + "route: {receiver: terminal, routes: [{matchers: [nonsense]}]}\n", "`nonsense` is not a matcher"),
        (LEAST + "route: {receiver: terminal, routes: [{routes: [{receiver: ops}]}]}\n", "there is no receiver `ops`"),
        (LEAST + "route: {receiver: terminal, routes: [{group_wait: soon}]}\n", "`soon` is not a duration"),
        (LEAST + "route: {receiver: terminal, mute_time_intervals: [x]}\n", "so it has no `mute_time_intervals`"),
        (
            LEAST + "route: {receiver: terminal, routes: [{active_time_intervals: [x]}]}\n",
            "3:63: error[TOC717]: there is no time interval `x`",
        ),
        (INTERVAL % "times: [{start_time: '22:00', end_time: '06:00'}]", "ends before it begins"),
        (INTERVAL % "times: [{start_time: '9:00', end_time: '10:00'}]", "`9:00` is not a time of the day"),
        (INTERVAL % "times: [{start_time: '09:00', end_time: '24:01'}]", "`24:01` is not a time of the day"),
        (INTERVAL % "weekdays: ['friday:monday']", "`friday:monday` ends before it begins"),
        (INTERVAL % "weekdays: [mon]", "`mon` is not a day of the week"),
        (INTERVAL % "days_of_month: ['-1:5']", "`-1:5` begins at the end of the month"),
        (INTERVAL % "days_of_month: ['0']", "`0` is not a day of the month"),
        (INTERVAL % "months: [13]", "`13` is not a month"),
        (INTERVAL % "location: Local", "`Local` is not a time zone"),
        (
            LEAST + "time_intervals: [{name: a, time_intervals: [{}]}, {name: a, time_intervals: [{}]}]\n",
            "another time interval `a`",
        ),
        (ARCHIVE % "url: http://es.example, api_key: env:K", "`http://es.example` is not an address that may be sent a secret"),
        (ARCHIVE % "url: https://a@es.example", "must be an http address without a password"),
        (ARCHIVE % "url: []", "must be an http address without a password"),
        (ARCHIVE % "url: https://es.example, api_key: hunter2", "must not hold the secret itself"),
        (ARCHIVE % "url: https://es.example, user: anna", "needs either `api_key`, or `user` and `password`"),
        (ARCHIVE % "url: https://es.example, index: Incidents", "`Incidents` is not the name of an index"),
        (LEAST + "kibana: {url: x, data_view: y}\n", "`kibana.url` is wrong: `x` is not an address of Kibana"),
        (LEAST + "kibana: {url: 'https://k', data_view: y, version: new}\n", "`new` is not a version of Kibana"),
        (LEAST + "kibana: {url: 'https://k'}\n", "links to the logs need `data_view` or `indices`"),
        (LEAST + "kibana: {url: 'https://k', data_view: y, style: short}\n", "`short` is not a form of links"),
        (LEAST + "kibana: {url: 'https://k', indices: [y], version: '7.13'}\n", "links of this form need `data_view`"),
        (LEAST + "kibana: {url: 'https://k', indices: [y], style: opensearch}\n", "links of this form need `data_view`"),
        (LEAST + "kibana: {url: 'https://k', data_view: y, style: esql}\n", "links to the logs need `indices`"),
        (
            LEAST + "kibana: {url: 'https://k', indices: [y], style: esql, version: '8.14'}\n",
            "there is no ES|QL before Kibana 8.15",
        ),
        (LEAST + "kibana: {url: 'https://k', data_view: y, version: '7.13', style: locator}\n", "no such form of links before"),
        (LEAST + "route: {receiver: ops}\n", "there is no receiver `ops`"),
        ("sources:\n  - {type: files, paths: [a], labels: {x: '{path:(}'}}\n", "'(' is not a regular expression"),
        ("sources:\n  - {type: files, paths: [a], labels: {x: '{path:a'}}\n", "'{path:a' has no closing brace"),
        ("sources:\n  - {type: files, paths: [a], labels: {cluster: '{path:a}'}}\n", "a source belongs to one cluster"),
        ("sources:\n  - {type: file, paths: [a]}\n", "`file` is not a type of source"),
        (KAFKA.replace("{key:", "{kee:"), "`{kee}` is no part of a record"),
        (KAFKA.replace("env:KAFKA_PASSWORD", "hunter2"), "`sasl.password` is a secret"),
        (KAFKA.replace("session.timeout.ms", "isolation.level"), "`isolation.level` cannot be set here"),
        ("sources: []\n", "`sources` must not be empty"),
        ("sources: [\n", "not valid YAML"),
        ("", "the file is empty"),
    ],
)
def test_what_is_wrong_is_said_plainly(tmp_path: Path, text: str, finding: str) -> None:
    (one,) = findings(tmp_path, text)
    assert finding in one


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the configuration cannot be read"):
        load(tmp_path / "none.yml")


@pytest.mark.parametrize(
    "receiver",
    [
        "{name: ops, slack: {channel: x, token: xoxb-very-secret}}",
        '{name: ops, slack: {chanel: x, token: "xoxb-very-secret"}}',
        "{name: ops, slack: {webhook_url: https://hooks.example/very-secret}}",
        "{name: ops, webhook: {url: https://me:very-secret@page.example}}",
        "{name: ops, slak: {token: 'very-secret'}}",
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_printed(tmp_path: Path, receiver: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, LEAST + f"receivers:\n  - {receiver}\n"))
    assert "very-secret" not in "".join(finding.render() for finding in caught.value.diagnostics)


def test_secrets_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_TEST_TOKEN", " xoxb-1\n")
    (tmp_path / "token").write_text("xoxb-2\n")
    (tmp_path / "nothing").write_text("\n")
    assert Secret("env", "TOCSIN_TEST_TOKEN").reveal() == "xoxb-1"
    assert Secret("file", str(tmp_path / "token")).reveal() == "xoxb-2"
    for secret, sentence in (
        (Secret("env", "TOCSIN_TEST_NONE"), "the environment variable TOCSIN_TEST_NONE is not set"),
        (Secret("file", str(tmp_path / "none")), "the file cannot be read"),
        (Secret("file", str(tmp_path / "nothing")), "the file is empty"),
    ):
        with pytest.raises(UsageError, match=sentence):
            secret.reveal()


def test_overrides_except_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    excepted = "overrides: {x: {except: ['seen {n:int}', {level: INFO}], unless: n < 3}}"
    path.write_text(f"sources: [{{type: files, paths: [a]}}]\n{excepted}\n")
    change = load(path).overrides["x"]
    assert change.exceptions is not None
    assert [len(tests) for tests in change.exceptions.any_of] == [1, 1]
    assert change.unless == Binary("<", NameExpression("n"), Literal(3))


def test_a_wrong_exception_is_told_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text("sources: [{type: files, paths: [a]}]\noverrides:\n  x:\n    except: {lavel: INFO}\n    unless: n <\n")
    with pytest.raises(ConfigError) as told:
        load(path)
    assert [(each.code, each.line, each.column) for each in told.value.diagnostics] == [("TOC301", 4, 14), ("TOC401", 5, 15)]


def test_which_stamps_are_times_is_said_for_each_source(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(
        "sources:\n"
        "  - {type: files, paths: [a.log], timezone: Asia/Seoul, stamps: {earliest: 1980-01-01, ahead: 1h}}\n"
        "  - {type: files, paths: [b.log]}\n"
    )
    first, second = load(path).sources
    assert first.labels == {
        "timezone": "Asia/Seoul",
        "stamps.earliest": "1980-01-01T00:00:00+09:00",
        "stamps.ahead_s": "3600.0",
    }
    assert second.labels == {}
    path.write_text("sources:\n  - {type: files, paths: [a.log], stamps: {earliest: yesterday, ahead: soon, late: 1}}\n")
    with pytest.raises(ConfigError) as wrong:
        load(path)
    assert len(wrong.value.diagnostics) == 3


def test_a_source_bears_for_whom_it_may_speak(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text(
        "sources:\n"
        "  - {type: files, paths: [a], may_speak_for: []}\n"
        "  - {type: files, paths: [b], may_speak_for: [controller, broker 1]}\n"
        "  - {type: files, paths: [c]}\n"
    )
    told = [source.labels.get(SPEAKS_FOR) for source in load(tmp_path / "tocsin.yml").sources]
    assert told == [NOBODY, "controller, broker 1", None]


def test_whom_nobody_could_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tocsin.yml").write_text("sources:\n  - {type: files, paths: [a], may_speak_for: ['Broker, 1']}\n")
    with pytest.raises(ConfigError, match="not a process to speak for"):
        load(tmp_path / "tocsin.yml")


def test_an_index_is_a_receiver_and_nobody_is_told_by_it_alone(tmp_path: Path) -> None:
    text = (
        "receivers:\n"
        "  - name: es\n"
        "    elasticsearch:\n"
        "      {url: [https://a, https://b], user: anna, password: file:pw, ca: file:ca.pem, changes: c, retention: 0s}\n"
        "  - {name: open, elasticsearch: {url: http://es:9200, api_key: env:K, unprotected: true}}\n"
        "  - {name: screen, terminal: {}}\n"
    )
    one, other, _ = (settings := load(written(tmp_path, LEAST + text))).receivers
    secrets = {"api_key": "", "user": "anna", "password": f"file:{tmp_path}/pw", "ca": f"file:{tmp_path}/ca.pem"}
    connection = {"urls": ["https://a", "https://b"], "unprotected": False, **secrets}
    assert one == ElasticsearchSettings("es", connection, "tocsin-incidents", "c", 0.0)
    assert isinstance(other, ElasticsearchSettings) and other.connection["unprotected"] and other.retention_s == 365 * 86400
    assert settings.route.receiver == "screen"
