"""tocsin.yml: what is right becomes settings, what is wrong is told all at once with its place."""

from pathlib import Path

import pytest

from connectors.files import LabelError, check_label
from engine.config import WebSettings, load
from engine.dsl import Override
from engine.errors import ConfigError, UsageError

FULL = r"""
clusters:
  prod: {brokers: [1, 2, 3], bootstrap: "kafka-1:9092", connect_url: "http://connect:8083"}
sources:
  - {type: files, paths: ["logs/broker-*/server.log*", /var/log/kafka], labels: {cluster: prod, broker: "{path:broker-(\\d+)}"}}
  - {type: files, paths: [connect.log], timezone: Asia/Seoul, start: 2h}
rules: [builtin, ./my-rules]
overrides: {broker-silent: {severity: low}, other: {disabled: true}}
route: {receiver: screen}
receivers:
  - {name: screen, terminal: {}}
store: "sqlite:///state/tocsin.db"
spark: {cores: 4, partitions: 2, heap: 2g, trigger: 500ms}
web: {listen: "[::1]:9000", public_url: "https://tocsin.example/"}
"""
LEAST = "sources:\n  - {type: files, paths: [a.log]}\n"


def wrong_label(template: str) -> str | None:
    try:
        check_label(template)
    except LabelError as error:
        return str(error)
    return None


def written(folder: Path, text: str) -> Path:
    path = folder / "tocsin.yml"
    path.write_text(text)
    return path


def findings(folder: Path, text: str) -> list[str]:
    path = written(folder, text)
    with pytest.raises(ConfigError) as caught:
        load(path, wrong_label)
    return [d.one_line().removeprefix(f"{path}:") for d in caught.value.diagnostics]


def test_a_full_configuration_becomes_settings_with_paths_relative_to_its_folder(tmp_path: Path) -> None:
    settings = load(written(tmp_path, FULL), wrong_label)
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
    assert settings.receiver == "screen"
    assert settings.store == f"sqlite:///{tmp_path}/state/tocsin.db"
    assert settings.checkpoint == tmp_path / "state/tocsin.checkpoint"
    assert (settings.cores, settings.partitions, settings.heap, settings.trigger_s) == (4, 2, "2g", 0.5)
    assert settings.web == WebSettings("::1", 9000, "https://tocsin.example")


def test_one_source_is_enough(tmp_path: Path) -> None:
    settings = load(written(tmp_path, LEAST))
    assert settings.rules == (None,)
    assert settings.receiver == "terminal"
    assert settings.store == f"sqlite:///{tmp_path}/.tocsin/tocsin.db"
    assert settings.sources[0].start is None
    assert settings.web == WebSettings("127.0.0.1", 8320)


def test_every_error_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    text = r"""
sources:
  - {type: files, path: [a.log]}
  - {type: files, paths: [b.log], timezone: Asia/Seul, start: yesterday}
  - {type: kafka, bootstrap_servers: "kafka-1:9092", topics: [logs]}
spark: {cores: two, colour: red}
"""
    assert findings(tmp_path, text) == [
        "3:5: error[TOC202]: `sources[0].paths` is missing",
        "3:19: error[TOC201]: unknown key `path`",
        "4:45: error[TOC705]: `sources[1].timezone` is wrong: `Asia/Seul` is not a time zone",
        "4:63: error[TOC704]: `sources[1].start` is wrong: `yesterday` is not a start",
        "5:5: error[TOC701]: `sources[2]` is wrong: sources of type kafka are not available in this version",
        "6:16: error[TOC206]: `spark.cores` is wrong: `two` is not a whole number",
        "6:21: error[TOC201]: unknown key `colour`",
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            LEAST + "receivers:\n  - {name: ops, slack: {channel: x}}\n",
            "receivers of type slack are not available",
        ),
        (LEAST + "route: {receiver: terminal, group_by: [x]}\n", "`group_by` is not available in this version"),
        (LEAST + "kibana: {url: x}\n", "`kibana` is not available in this version"),
        (LEAST + "web: {listen: '8320'}\n", "`web.listen` is wrong: `8320` is not HOST:PORT"),
        (LEAST + "web: {listen: '::1:8320'}\n", "`::1:8320` is not HOST:PORT"),
        (LEAST + "web: {listen: '127.0.0.1:99999'}\n", "`127.0.0.1:99999` is not HOST:PORT"),
        (LEAST + "web: {public_url: tocsin.example}\n", "`tocsin.example` is not an address of scheme and host"),
        (LEAST + "web: {public_url: 'https://x/tocsin'}\n", "`https://x/tocsin` is not an address of scheme and host"),
        (LEAST + "web: {auth: {user: x}}\n", "`auth` is not available in this version"),
        (LEAST + "route: {receiver: ops}\n", "there is no receiver `ops`"),
        ("sources:\n  - {type: files, paths: [a], labels: {x: '{path:(}'}}\n", "'(' is not a regular expression"),
        ("sources:\n  - {type: files, paths: [a], labels: {x: '{path:a'}}\n", "'{path:a' has no closing brace"),
        ("sources:\n  - {type: files, paths: [a], labels: {cluster: '{path:a}'}}\n", "a source belongs to one cluster"),
        ("sources:\n  - {type: file, paths: [a]}\n", "`file` is no type of source"),
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
