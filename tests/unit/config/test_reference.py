"""docs/configuration.md says what is implemented, and its examples are right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from engine.config.meanings import MEANINGS
from engine.config.receivers import RECEIVER_TYPES
from engine.config.reference import SECTIONS, default_text, regenerated
from engine.config.schema import ConfigFile, SparkEntry
from engine.dsl.document import plain
from engine.dsl.json_schema import models
from engine.dsl.reader import read

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
MODELS = models(ConfigFile)
# keys that exclude others, by model: they are tried without these
REFUSED = {"ConnectSourceEntry": ("start",), "ClusterSourceEntry": ("start",)}  # keys that every source has, but these
LOGIN = {"api_key": ("user", "password")}
ALTERNATIVES: dict[str, dict[str, tuple[str, ...]]] = {
    "SlackEntry": {"webhook_url": ("channel", "token", "app_token")},
    "AuthEntry": {"proxy": ("users",)},
    "AlertmanagerEntry": {"token": ("user", "password")},
    "ElasticsearchSourceEntry": LOGIN,
    "ElasticsearchReceiverEntry": LOGIN,
}


def values(name: str) -> dict[str, Any]:
    """Return the examples of a model as the reader of a configuration gives them."""
    meanings = {key: meaning for key, meaning in MEANINGS[name].items() if key not in REFUSED.get(name, ())}
    written = "\n".join(f"{key}: {example}" for key, (_, example) in meanings.items())
    document, report = read("example", written.encode())
    assert report.all() == ()
    value = plain(document.root)
    assert isinstance(value, dict)
    return value


def test_the_page_is_up_to_date() -> None:
    text = regenerated(PAGE.read_text(encoding="utf-8"))
    if os.environ.get("TOCSIN_ACCEPT") == "1":
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "docs/configuration.md is behind the code; see make accept"


def test_every_key_has_a_meaning_and_an_example() -> None:
    keys = {name: {field.alias or key for key, field in model.model_fields.items()} for name, model in MODELS.items()}
    assert {name: {*meanings} for name, meanings in MEANINGS.items()} == keys


def test_every_model_has_a_section() -> None:
    assert {*SECTIONS.values()} == MODELS.keys() - {"TerminalEntry"}


@pytest.mark.parametrize("name", [name for name in MODELS if MEANINGS[name] and name != "RootEntry"])
def test_the_examples_of_a_model_are_valid(name: str) -> None:
    examples, alternatives = values(name), ALTERNATIVES.get(name, {})
    excluded = {*alternatives}
    if name == "ReceiverEntry":
        excluded |= {*RECEIVER_TYPES[1:]}
    MODELS[name].model_validate({key: value for key, value in examples.items() if key not in excluded})
    for others in alternatives.values():
        MODELS[name].model_validate({other: value for other, value in examples.items() if other not in others})
    for type_ in excluded & {*RECEIVER_TYPES}:
        MODELS[name].model_validate({"name": "a", type_: examples[type_]})


def test_the_examples_of_the_root_of_routes_are_valid() -> None:
    own = values("RootEntry")
    branches = ("matchers", "continue", "mute_time_intervals", "active_time_intervals")
    MODELS["RootEntry"].model_validate({key: value for key, value in own.items() if key not in branches})


@pytest.mark.parametrize(
    ("key", "text"), [("cores", "`2`"), ("trigger", "`1s`"), ("heap", "`1g`"), ("checkpoint", ""), ("batch_lines", "`500000`")]
)
def test_defaults_are_written_as_in_the_file(key: str, text: str) -> None:
    assert default_text(SparkEntry.model_fields[key]) == text


def test_other_defaults() -> None:
    fields = ConfigFile.model_fields
    assert default_text(fields["sources"]) == "required"
    assert default_text(fields["rules"]) == "`[builtin]`"
    assert default_text(fields["retention"]) == "`90d`"
