"""Keep compiled plans on disk, so that a small scan does not compile every rule again."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from engine.codec import dumps, loads
from engine.model.rules import Plan

KEPT = 8


def cached(digest: str, cache_dir: Path | None = None) -> Plan | None:
    """Return the plan stored under `digest`, None when there is none that can be read."""
    try:
        plan = loads(_file(digest, cache_dir).read_text("utf-8"), Plan)
    except Exception:  # whatever a damaged or foreign file does: the rules themselves are at hand
        return None
    return plan if plan.hash == digest else None


def store(plan: Plan, cache_dir: Path | None = None) -> None:
    """Write `plan` under its hash in one step, and drop all but the newest files; does nothing where it may not write."""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home folder
        file = _file(plan.hash, cache_dir)
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, dumps(plan))
        _prune(file.parent)


def _write(file: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".plan-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(folder: Path) -> None:
    plans = sorted(folder.glob("plan-*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in plans[KEPT:]:
        file.unlink(missing_ok=True)


def _file(digest: str, cache_dir: Path | None) -> Path:
    return (cache_dir or _default_dir()) / f"plan-{digest[:32]}.json"


def _default_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tocsin"
