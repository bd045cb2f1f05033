"""A journal of systemd for tests: entries that are written to it, and the stand-in for journalctl that reads them."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("journalctl.py")
BEGIN_US = 1_664_989_539_000_000


class Journal:
    """A journal in `folder`; `bin` is a folder for PATH with a program `journalctl` that reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "journal"
        self.bin = folder / "bin"
        self._written = 0
        for place in (self.folder, self.bin):
            place.mkdir(parents=True)
        program = self.bin / "journalctl"
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I '{PROGRAM}' \"$@\"\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def write(self, message: Any, unit: str = "kafka.service", at_us: int | None = None, **fields: Any) -> str:
        """Add an entry, and return its cursor; `at_us` microseconds since 1970, else a millisecond after the one before."""
        self._written += 1
        at_us = BEGIN_US + self._written * 1000 if at_us is None else at_us
        cursor = f"s={1:032x};i={self._written:x};b={2:032x};m={self._written:x};t={at_us:x};x={self._written:x}"
        row = {
            "__CURSOR": cursor,
            "__REALTIME_TIMESTAMP": str(at_us),
            "__MONOTONIC_TIMESTAMP": str(self._written),
            "_BOOT_ID": f"{2:032x}",
            "_HOSTNAME": "broker-1",
            "_SYSTEMD_UNIT": unit,
            "_PID": "4711",
            "MESSAGE": message,
            **fields,
        }
        with (self.folder / "journal.jsonl").open("a") as journal:
            journal.write(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n")
        return cursor

    def vacuum(self, keep: int) -> None:
        """Remove all entries but the last `keep`."""
        file = self.folder / "journal.jsonl"
        rows = file.read_text().splitlines(keepends=True)
        file.write_text("".join(rows[len(rows) - keep :]))

    def complain(self, sentence: str, code: int | None = None) -> None:
        """Have journalctl say `sentence` on stderr, and end with `code` if it is given."""
        (self.folder / "complaint").write_text(sentence if code is None else f"{sentence}\n{code}")

    def recover(self) -> None:
        """Have journalctl complain no more."""
        (self.folder / "complaint").unlink()
