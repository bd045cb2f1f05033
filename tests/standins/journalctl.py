"""Stands in for journalctl: prints the rows of `journal.jsonl` in the folder of a journal as the real one prints its entries.

What it takes: --output=json, --all, --no-pager, --output-fields, --directory, --lines, --cursor, --since, --follow, --no-tail.
A cursor whose entry is gone stands for the place where that was, as in systemd. A file `complaint` in the folder is what it
says on stderr; when that has a second line, it is the exit code.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ALWAYS = ("__CURSOR", "__REALTIME_TIMESTAMP", "__MONOTONIC_TIMESTAMP", "_BOOT_ID")
THRESHOLD = 4096  # longer fields are null without --all


def main() -> int:
    options = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("output", "output-fields", "directory", "cursor", "since"):
        options.add_argument(f"--{name}")
    for name in ("all", "no-pager", "follow", "no-tail"):
        options.add_argument(f"--{name}", action="store_true")
    options.add_argument("--lines", type=int)
    asked = options.parse_args()
    assert asked.output == "json"
    folder = Path(asked.directory or os.environ["STANDIN_JOURNAL"])
    if (code := _complained(folder)) is not None:
        return code
    there = list(entries(folder))
    here = [row for row in there if _is_due(row, asked)]
    for row in here[-asked.lines :] if asked.lines else here:
        _print(row, asked)
    passed = {row["__CURSOR"] for row in there}
    while asked.follow:
        for row in entries(folder):
            if row["__CURSOR"] not in passed:
                passed.add(row["__CURSOR"])
                _print(row, asked)
        if (code := _complained(folder)) is not None:
            return code
        time.sleep(0.01)
    return 0


def _complained(folder: Path) -> int | None:
    """Say what there is to complain of; return the code to end with, None to go on."""
    complaint = folder / "complaint"
    if not complaint.exists():
        return None
    sentence, _, code = complaint.read_text().partition("\n")
    print(sentence, file=sys.stderr)
    return int(code) if code else None


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    journal = folder / "journal.jsonl"
    for line in journal.read_text().splitlines(keepends=True) if journal.exists() else ():
        if line.endswith("\n"):
            yield json.loads(line)


def _is_due(row: dict[str, Any], asked: argparse.Namespace) -> bool:
    if asked.cursor:
        return _number(row["__CURSOR"]) >= _number(asked.cursor)
    return not asked.since or int(row["__REALTIME_TIMESTAMP"]) >= float(asked.since.removeprefix("@")) * 1e6


def _number(cursor: str) -> int:
    return int(cursor.split(";")[1].removeprefix("i="), 16)


def _print(row: dict[str, Any], asked: argparse.Namespace) -> None:
    names = (*ALWAYS, *asked.output_fields.split(",")) if asked.output_fields else tuple(row)
    shown = {name: value for name, value in row.items() if name in names}
    if not asked.all:
        shown = {name: None if len(value) > THRESHOLD else value for name, value in shown.items()}
    print(json.dumps(shown, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    sys.exit(main())
