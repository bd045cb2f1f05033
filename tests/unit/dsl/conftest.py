"""A folder with one rule of every kind: a signature, a count over it and an absence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.dsl.writing import BROKER, COUNTED, SILENT, WITH_TOPIC, rule, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "broker.yml").write_text(BROKER)
    return write(tmp_path, seen_once=rule("seen-once", WITH_TOPIC), many=rule("many", COUNTED), gone=rule("gone", SILENT))
