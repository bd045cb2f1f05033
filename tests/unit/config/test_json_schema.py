"""The JSON Schema takes every good configuration, and refuses what a schema can tell to be wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from engine.config.json_schema import config_schema
from tests.unit.config.test_settings import FULL, KAFKA

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "tocsin.schema.json"
GOLDEN = ROOT / "tests" / "golden" / "configurations"
SCHEMA = config_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
TELLABLE = ("bad-secret", "not-available")  # broken configurations whose mistake is one of structure


def value(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def test_the_published_schema_is_that_of_the_loader() -> None:
    wanted = json.dumps(SCHEMA, ensure_ascii=False, indent=2) + "\n"
    if os.environ.get("TOCSIN_ACCEPT") == "1":
        PUBLISHED.write_text(wanted, encoding="utf-8")
    assert PUBLISHED.read_text(encoding="utf-8") == wanted, "docs/tocsin.schema.json is behind the code; see make accept"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [FULL, KAFKA, (ROOT / "samples" / "tocsin.yml").read_text()], ids=["full", "kafka", "samples"])
def test_good_configurations_are_valid(text: str) -> None:
    assert [f"{error.json_path} {error.message}" for error in VALIDATOR.iter_errors(value(text))] == []


@pytest.mark.parametrize("name", TELLABLE)
def test_broken_ones_are_not(name: str) -> None:
    assert not VALIDATOR.is_valid(value((GOLDEN / f"{name}.yml").read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "sources: []",
        "sources: [{type: files, paths: [a], topics: [x]}]",
        "sources: [{type: docker, paths: [a]}]",
        "sources: [{type: fiels, paths: [a]}]",
        "sources: [{type: files, paths: [a]}]\nreceivers: [{name: a, terminal: {}, slack: {}}]",
        "sources: [{type: files, paths: [a]}]\nretention: soon",
        "sources: [{type: files, paths: [a]}]\nroster: 3",
    ],
)
def test_wrong_structures_are_refused(text: str) -> None:
    assert not VALIDATOR.is_valid(value(text))


def test_every_key_has_a_description() -> None:
    objects = [SCHEMA, *SCHEMA["$defs"].values()]
    assert [key for each in objects for key, of in each.get("properties", {}).items() if not of.get("description")] == []
