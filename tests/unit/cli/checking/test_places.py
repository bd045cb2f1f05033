"""What a check says of the store, the checkpoint and the address of the pages."""

from __future__ import annotations

import socket
from pathlib import Path

from engine.cli.checking.outcomes import CheckOutcome
from engine.cli.checking.places import checked_places
from engine.config import load


def checked(folder: Path, more: str) -> dict[str, tuple[CheckOutcome, str]]:
    (folder / "tocsin.yml").write_text(f"sources: [{{type: files, paths: [a.log]}}]\n{more}\n")
    return {item.area: (item.outcome, item.sentence) for item in checked_places(load(folder / "tocsin.yml"))}


def test_an_address_in_use_is_a_warning_and_one_of_another_machine_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        in_use = checked(tmp_path, f"web: {{listen: '127.0.0.1:{taken.getsockname()[1]}'}}")
    assert in_use["pages"][0] is CheckOutcome.WARNING
    assert checked(tmp_path, "web: {listen: '0.0.0.0:0'}")["pages"][0] is CheckOutcome.WRONG
    assert checked(tmp_path, "web: {listen: 'nowhere.invalid:80'}")["pages"][0] is CheckOutcome.WRONG
    assert checked(tmp_path, "web: {listen: '127.0.0.1:0'}")["pages"][0] is CheckOutcome.OK


def test_a_checkpoint_whose_store_is_gone_fails_and_says_what_to_do(tmp_path: Path) -> None:
    commits = tmp_path / "state.checkpoint" / "query" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1\n{}")
    outcome, sentence = checked(tmp_path, "store: sqlite:///state.db")["checkpoint"]
    assert (outcome, "is gone, and the checkpoint" in sentence) == (CheckOutcome.FAILED, True)


def test_a_checkpoint_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome, sentence = checked(tmp_path, "spark: {checkpoint: file/below}")["checkpoint"]
    assert (outcome, "is no folder" in sentence) == (CheckOutcome.FAILED, True)


def test_a_checkpoint_that_only_spark_can_reach_is_not_looked_at(tmp_path: Path) -> None:
    outcome, sentence = checked(tmp_path, "spark: {checkpoint: 'hdfs://namenode/tocsin'}")["checkpoint"]
    assert (outcome, sentence) == (CheckOutcome.WARNING, "not looked at: only Spark can reach it")


def test_settings_of_spark_without_effect_and_secrets_that_are_not_there_are_told(tmp_path: Path) -> None:
    assert "spark" not in checked(tmp_path, "")
    outcome, sentence = checked(tmp_path, "spark: {conf: {spark.sql.shuffle.partitions: 9}}")["spark"]
    assert (outcome, sentence.partition(":")[0]) == (
        CheckOutcome.WARNING,
        "the setting spark.sql.shuffle.partitions of Spark is 1",
    )
    outcome, sentence = checked(tmp_path, "spark: {conf: {spark.authenticate.secret: 'file:none'}}")["spark"]
    assert (outcome, "the file cannot be read" in sentence) == (CheckOutcome.WRONG, True)
    outcome, _ = checked(tmp_path, "spark: {master: 'k8s://https://api:6443'}")["spark"]
    assert outcome is CheckOutcome.OK
