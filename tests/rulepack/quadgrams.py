"""Counts in how many lines of good logs every four folded characters stand: `python -m tests.rulepack.quadgrams` writes
engine/dsl/quadgrams.json, by which signs are chosen (engine/dsl/signs.py)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from engine.dsl.signs import DATA, LINES, WIDTH
from engine.model.signs import folded
from tests.rulepack.playing import SAMPLES

LEAST = 5  # of LINES: what is rarer is left out


def counted() -> Mapping[str, int]:
    """Return by four characters in how many of LINES lines they stand, in alphabetical order."""
    counts, lines = Counter[str](), 0
    for path in sorted((SAMPLES / "goodlog").rglob("*.log")):
        for line in path.read_bytes().splitlines():
            text = folded(line).decode()
            counts.update({text[at : at + WIDTH] for at in range(len(text) - WIDTH + 1)})
            lines += 1
    shares = {gram: round(count / lines * LINES) for gram, count in sorted(counts.items())}
    return {gram: share for gram, share in shares.items() if share >= LEAST}


def written(counts: Mapping[str, int]) -> str:
    """Return the content of the file."""
    return json.dumps(counts, ensure_ascii=False, indent=0) + "\n"


def main() -> None:
    """Write the counts."""
    DATA.write_text(written(counted()), encoding="utf-8")


if __name__ == "__main__":
    main()
