"""`tocsin rules stats`: how people fared with each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.cli.output import print_json
from engine.config import load
from engine.model.acts import RuleStats
from engine.model.incidents import DAWN
from engine.model.phrases import lasting
from engine.model.visible import visible
from engine.store import Store

_HEADINGS = ("incidents", "told", "acknowledged", "useful", "not useful", "median")


def print_stats(config: Path, since_s: float | None, as_json: bool) -> None:
    """Print the stats of the rules in the store of `config`, of incidents since `since_s` seconds ago; None: of all."""
    since = DAWN if since_s is None else datetime.now(UTC) - timedelta(seconds=since_s)
    store = Store.open(load(config).store)
    try:
        stats = store.rule_stats(since)
    finally:
        store.close()
    if as_json:
        print_json([_value(each) for each in stats])
        return
    print("\n".join(_lines(stats)))


def _value(stats: RuleStats) -> Mapping[str, Any]:
    counts = {"incidents": stats.incidents, "told": stats.told, "acknowledged": stats.acknowledged}
    counts |= {"useful": stats.useful, "not_useful": stats.not_useful}
    return {"rule": stats.rule, **counts, "median_resolve_s": stats.resolve_s, "reasons": list(stats.reasons)}


def _lines(stats: Sequence[RuleStats]) -> list[str]:
    if not stats:
        return ["no incidents"]
    width = max(len("rule"), *(len(each.rule) for each in stats))
    lines = [f"{'rule':{width}}  {'  '.join(f'{heading:>12}' for heading in _HEADINGS)}"]
    for each in stats:
        median = "" if each.resolve_s is None else lasting(timedelta(seconds=each.resolve_s))
        cells = (each.incidents, each.told, each.acknowledged, each.useful, each.not_useful, median)
        lines.append(f"{each.rule:{width}}  {'  '.join(f'{cell:>12}' for cell in cells)}")
        lines += [visible(f"  not useful: {reason}") for reason in each.reasons]
    return lines
