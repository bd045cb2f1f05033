"""The `metrics` and `heartbeat` sections of tocsin.yml: schema and conversion to settings."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from engine.config.secrets import Address, placed_address
from engine.config.web import Listen, listen_address
from engine.dsl.schema import Duration, Strict
from engine.secrets import Secret

METRICS_LISTEN = "127.0.0.1:9464"


class MetricsSettings(Struct, frozen=True):
    """The address at which metrics and health are served."""

    host: str
    port: int


class HeartbeatSettings(Struct, frozen=True):
    """The address of a dead man's switch; text, or a Secret when the address itself is secret."""

    url: str | Secret
    every_s: float


class MetricsSection(Strict):
    """metrics and health: listen"""

    listen: Listen = METRICS_LISTEN


class HeartbeatSection(Strict):
    """a dead man's switch: url, and every"""

    url: Address
    every: Duration = 60.0


def metrics_settings(entry: MetricsSection | None) -> MetricsSettings | None:
    """Return the settings of the section; None without it."""
    return None if entry is None else MetricsSettings(*listen_address(entry.listen))


def heartbeat_settings(entry: HeartbeatSection | None, folder: Path) -> HeartbeatSettings | None:
    """Return the settings of the section; None without it. The path of a `file:` reference is relative to `folder`."""
    return None if entry is None else HeartbeatSettings(placed_address(entry.url, folder), max(entry.every, 1.0))
