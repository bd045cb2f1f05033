"""What `tocsin audit` promises: the same answer live and from a record, in three formats, and no false all-clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors import kafka_cluster
from engine.cli.main import main
from engine.errors import SourceAway
from tests.unit.risks.test_reading import FIRST, stamped

SETTINGS = """All configs for broker 1 are:
  min.insync.replicas=1 sensitive=false synonyms={}
"""
LONE = f"""Cluster ID: xyz
ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE
1          kafka-1                        9092       null       unfenced   broker
2          kafka-2                        9092       null       unfenced   broker
3          kafka-3                        9092       null       unfenced   broker
Topic: a|b\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n\tTopic: a|b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
{SETTINGS}{SETTINGS.replace("broker 1", "broker 2")}{SETTINGS.replace("broker 1", "broker 3")}"""
CLEAN = LONE.replace("Replicas: 1", "Replicas: 1,2,3").replace("replicas=1", "replicas=2")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "asked.log"
    path.write_text("\n".join(stamped(LONE, "22:11:25")) + "\n")
    return path


def answer(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_record_is_judged_with_its_time(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(record), "--format", "json"]) == 1
    (cluster,) = answer(capsys)["clusters"]
    assert (cluster["cluster_id"], cluster["as_of"], cluster["connectors"]) == ("xyz", "2026-11-26T22:11:25.123Z", None)
    (risk,) = cluster["risks"]
    assert (risk["check"], risk["severity"], risk["kind"], risk["subject"]) == ("topic-one-replica", "high", "topic", "a|b")
    assert [step["run"].split()[0] for step in risk["fix"]] == [
        "kafka-reassign-partitions.sh",
        "kafka-reassign-partitions.sh",
        "kafka-configs.sh",
    ]
    assert "kafka-1:9092,kafka-2:9092,kafka-3:9092" in risk["fix"][0]["run"]


def test_text_and_markdown_say_the_same(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(record), "--bootstrap", "outside:9092"]) == 1
    text = capsys.readouterr().out
    for words in (
        "1 risk: 1 high",
        "--bootstrap-server outside:9092",
        "Changes   Copies its data",
        "no Connect cluster was asked",
    ):
        assert words in text
    assert main(["audit", str(record), "--format", "markdown"]) == 1
    markdown = capsys.readouterr().out
    assert "## HIGH: The partition of topic a\\|b has one replica, on broker 1" in markdown
    assert "```sh\n   kafka-reassign-partitions.sh" in markdown


def test_only_an_audit_that_saw_everything_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, partly = tmp_path / "clean.log", tmp_path / "partly.log"
    clean.write_text(CLEAN)
    assert main(["audit", str(clean)]) == 0
    assert "Result    no risk\n" in capsys.readouterr().out
    partly.write_text(CLEAN.replace(SETTINGS.replace("broker 1", "broker 3").replace("=1", "=2"), ""))
    assert main(["audit", str(partly)]) == 3
    text = capsys.readouterr().out
    assert "no risk in what could be judged; see what could not" in text
    assert "Unseen    the settings of broker 3 are not known" in text
    assert main(["audit", str(tmp_path / "missing.log")]) == 3


def test_what_the_configuration_accepts_is_counted(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text('sources: [{type: files, paths: [a.log]}]\naudit: {ignore: [{topics: ["a*"], reason: can be rebuilt}]}\n')
    assert main(["audit", str(record), "-c", str(config)]) == 0
    assert "1 risk ignored by the configuration: can be rebuilt" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", "-c", str(config)]) == 2
    assert "no source of the configuration is of type kafka-cluster or connect" in capsys.readouterr().err


def test_servers_of_one_cluster_are_judged_together_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_cluster, "survey", lambda settings, now: (FIRST.splitlines()[:-4], ["a right is missing"]))
    monkeypatch.chdir(tmp_path)
    Path("tocsin.yml").write_text(
        "clusters: {prod: {bootstrap: 'outside:9092'}}\n"
        "sources:\n- {type: kafka-cluster, bootstrap_servers: 'kafka-1:9092', labels: {cluster: prod},"
        " options: {security.protocol: SSL}}\n"
        "- {type: connect, url: 'http://127.0.0.1:1', labels: {cluster: prod}}\n"
    )
    assert main(["audit", "--format", "json", "--record", "kept.log"]) == 3  # a worker does not answer
    report = answer(capsys)
    (cluster,), (failure,) = report["clusters"], report["failures"]
    assert "Kafka Connect at 127.0.0.1:1 cannot be reached" in failure
    assert (cluster["cluster"], cluster["unseen"][0]) == ("prod", "a right is missing")
    runs = [step["run"] for risk in cluster["risks"] for step in risk["fix"] if "sh" in step["run"]]
    assert all("--bootstrap-server outside:9092 --command-config client.properties" in run for run in runs)
    assert main(["audit", "kept.log", "--format", "json"]) == 1
    again = answer(capsys)["clusters"][0]["risks"]
    assert [(r["check"], r["subject"]) for r in again if r["kind"] != "cluster"] == [
        (r["check"], r["subject"]) for r in cluster["risks"] if r["kind"] != "cluster"
    ]


def test_a_cluster_that_does_not_answer_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise SourceAway("kafka-1:9092", "no broker of kafka-1:9092 answers")

    monkeypatch.setattr(kafka_cluster, "survey", away)
    assert main(["audit", "--bootstrap", "kafka-1:9092"]) == 3
    assert capsys.readouterr().out == "Failed    no broker of kafka-1:9092 answers\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "what is to be audited? Name a configuration with -c"),
        (["a.log", "--record", "b.log"], "--record keeps what is asked"),
        (["--connect-url", "http://u:p@c:8083"], "--connect-url takes an http address without a password"),
        (["-c", "missing.yml"], "missing.yml: the configuration cannot be read"),
    ],
)
def test_wrong_use_is_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["audit", *arguments]) == 2
    assert sentence in capsys.readouterr().err
