"""Every line of docs/sources.md that is to be put into a configuration loads, and every type of source has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.inputs import OPENERS, checks
from engine.config import load

PAGE = Path(__file__).parents[1] / "docs" / "sources.md"
ENTRY = re.compile(r"`(?:- )?(\{type: ([\w-]+).*?\})`")
ENTRIES = ENTRY.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("entry", "type_"), ENTRIES)
def test_an_entry_can_be_put_into_a_configuration(entry: str, type_: str, tmp_path: Path) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text(f"sources:\n  - {entry}\n")
    (source,) = load(config, checks()).sources
    assert source.type == type_


def test_every_type_of_source_is_on_the_page() -> None:
    assert {type_ for _, type_ in ENTRIES} == OPENERS.keys()
