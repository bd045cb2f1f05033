"""What a rule that collapses its matches says of their number: it counts bursts, so no text may call it a number of lines."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

RULES = Path(__file__).parents[2] / "rules"
LINES_COUNTED = re.compile(r"(?:[Ss]een|[Ll]ines|[Aa]nswers|[Tt]ries)(?: of this kind)?(?: so far)?: \{count\}")
BURST_S = 10
UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: str) -> float:
    """Return a duration of the rule language in seconds."""
    ((number, unit),) = re.findall(r"^([0-9.]+)(ms|s|m|h)$", duration)
    return float(number) * UNIT_S[unit]


def test_a_count_of_bursts_is_not_printed_as_one_of_lines() -> None:
    rules = [
        yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        for path in RULES.glob("*/*.yml")
        if path.parent.name not in ("components", "formats", "terms")
    ]
    collapsed = [rule for rule in rules if seconds(rule.get("collapse", "0s")) >= BURST_S]
    assert collapsed
    assert [rule["id"] for rule in collapsed if LINES_COUNTED.search(str(rule.get("runbook")))] == []
