"""What a run says of the sources that earlier runs have read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.resuming import ConfiguredSource, offsets_in, resumed
from engine.spark.fence import QUERY

ES1, ES2, FILES = "elasticsearch prod https://es1 logs-*", "elasticsearch prod https://es2 logs-*", "files prod /var/log"


def sources(*names: str, has_start: bool = False) -> list[ConfiguredSource]:
    return [ConfiguredSource(name, has_start) for name in names]


@pytest.mark.parametrize("names", [(ES1, FILES), (ES1,), (ES1, FILES, ES2)])
def test_of_a_first_run_and_of_one_that_simply_goes_on_nothing_is_said(names: tuple[str, ...]) -> None:
    assert resumed(sources(*names, has_start=True), {}) == []
    assert resumed(sources(ES1, FILES), {name: {} for name in names}) == []


def test_a_start_that_counts_no_more_is_said() -> None:
    assert resumed([*sources(ES1, has_start=True), *sources(FILES)], {ES1: {}, FILES: {}}) == [
        f"`start` applies to a first run only; these continue where they ended: '{ES1}'"
    ]


def test_a_source_that_may_have_changed_its_address_is_said() -> None:
    (sentence,) = resumed(sources(ES2, FILES), {ES1: {}, FILES: {}})
    assert sentence.startswith(f"new, and read from `start`: '{ES2}'; not configured any more: '{ES1}'. If only an address")


def test_offsets_are_those_of_the_batch_that_was_planned_last(tmp_path: Path) -> None:
    assert offsets_in(tmp_path) == {}
    folder = tmp_path / QUERY / "offsets"
    folder.mkdir(parents=True)
    for number in (9, 10):
        (folder / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps({"sources": {ES1: {"n": number}}})}')
    assert offsets_in(tmp_path) == {ES1: {"n": 10}}
    (folder / "11").write_text("v1\n")
    assert offsets_in(tmp_path) == {}
