"""Keep compiled plans on disk, so that a small scan does not compile every rule again."""

from __future__ import annotations

from pathlib import Path

from engine.cache import Cache
from engine.codec import dumps, loads
from engine.model.rules import Plan


def cached(digest: str, cache_dir: Path | None = None) -> Plan | None:
    """Return the plan stored under `digest`, None when there is none that can be read."""
    stored = Cache(cache_dir).load(_name(digest))
    if stored is None:
        return None
    try:
        plan = loads(stored.decode("utf-8"), Plan)
    except Exception:  # whatever a damaged or foreign file does: the rules themselves are at hand
        return None
    return plan if plan.hash == digest else None


def store(plan: Plan, cache_dir: Path | None = None) -> None:
    """Write `plan` under its hash in one step, and drop all but the newest files; does nothing where it may not write."""
    Cache(cache_dir).store(_name(plan.hash), dumps(plan).encode("utf-8"))


def _name(digest: str) -> str:
    return f"plan-{digest[:32]}.json"
