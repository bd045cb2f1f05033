"""A backtest finds what the rules find live, and a changed rule differs by exactly its change."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from engine.cli.backtesting import apart, history_of, incidents_of
from engine.cli.rulebook import configured_plan
from engine.comparing import DifferenceKind, differences, reported
from engine.config import load
from engine.dsl import Override
from engine.errors import UsageError
from tests.spark.finals import SAMPLES, STORIES, references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StartedSession:
    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def session(self) -> SparkSession:
        return self._session

    def parallelism(self) -> int:
        return 1


def test_history_gives_the_incidents_of_a_run_and_a_changed_rule_its_difference_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings, sentences = load(SAMPLES / "tocsin.yml"), list[str]()
    changed = replace(settings, overrides={**settings.overrides, "broker-silent": Override(severity="low")})
    plans = [("configured", configured_plan(settings)), ("new", configured_plan(changed))]
    history = history_of(settings, None, sentences.append)
    own = apart(settings, tmp_path, "configured")
    before, after = incidents_of(history, own, plans, StartedSession(spark), threading.Event(), sentences.append)
    told = reported(before)
    assert sorted(incident.key[1] for incident in told) == sorted(key[1] for key, *_ in references(STORIES) if key)
    (difference,) = differences(told, reported(after))
    assert (difference.kind, difference.incident.rule) == (DifferenceKind.SEVERITY, "broker-silent")
    assert {path.name for path in tmp_path.iterdir()} >= {"configured.db", "new.db"}


def test_what_is_asked_has_no_history(tmp_path: Path) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources: [{type: connect, url: 'http://127.0.0.1:1'}]\n")
    sentences: list[str] = []
    with pytest.raises(UsageError, match="none of the sources has a history"):
        history_of(load(config), None, sentences.append)
    assert "is left out: it has no history" in sentences[0]
