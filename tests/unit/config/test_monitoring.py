"""The sections `metrics` and `heartbeat`."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import HeartbeatSettings, MetricsSettings, Settings, load
from engine.errors import ConfigError
from engine.secrets import Secret

LEAST = "sources: [{type: files, paths: [a.log]}]\n"


def loaded(folder: Path, text: str) -> Settings:
    (folder / "tocsin.yml").write_text(LEAST + text)
    return load(folder / "tocsin.yml")


def test_without_the_sections_there_are_no_settings(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "")
    assert (settings.metrics, settings.heartbeat) == (None, None)


def test_defaults(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "metrics: {}\nheartbeat: {url: 'https://hc.example/ping'}\n")
    assert settings.metrics == MetricsSettings("127.0.0.1", 9464)
    assert settings.heartbeat == HeartbeatSettings("https://hc.example/ping", 60.0)


def test_the_address_of_a_heartbeat_may_be_secret(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hc.example/s3cret\n")
    heartbeat = loaded(tmp_path, "heartbeat: {url: 'file:url', every: 30s}\n").heartbeat
    assert heartbeat is not None
    assert isinstance(heartbeat.url, Secret)
    assert (heartbeat.url.reveal(), heartbeat.every_s) == ("https://hc.example/s3cret", 30.0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("heartbeat: {url: x}\n", "must be an http address without a password"),
        ("heartbeat: {}\n", "url"),
        ("heartbeat: {url: 'https://hc.example', every: soon}\n", "soon"),
        ("metrics: {listen: here}\n", "`here` is not HOST:PORT"),
        ("metrics: {port: 9464}\n", "port"),
    ],
)
def test_mistakes_are_named(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, text)
    assert sentence in str(error.value.diagnostics)
