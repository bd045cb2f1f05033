"""Silences: notifications of some incidents are muted for a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from engine.model.records import Labels
from engine.model.routes import Silence
from engine.route.matchers import holds


def muted_by(labels: Labels, silences: Iterable[Silence], now: datetime) -> Silence | None:
    """Return the silence that is in force at `now` for these labels; of several the one that ends last; None without one."""
    active = [s for s in silences if s.starts_at <= now < s.ends_at and holds(s.matchers, labels)]
    return max(active, key=lambda silence: (silence.ends_at, silence.id), default=None)
