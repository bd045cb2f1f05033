"""Run the tests of rules again whenever their files change: `tocsin rules test --watch`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from engine.cli.exits import FOUND, NOTHING_FOUND
from engine.cli.output import count
from engine.cli.signals import stopping_on_interrupt
from engine.dsl.files import stamps
from engine.errors import DiagnosticsError, UsageError

LOOK_S = 0.3


def watch_tests(
    paths: Sequence[Path], test: Callable[[Container[str] | None], Sequence[str]], stop: threading.Event | None = None
) -> int:
    """Call `test` with None, and then with the rule files that have changed or failed, until `stop` is set or Ctrl-C comes.

    Return the exit code of the last call. Rules with errors are reported, and tried again when a file changes.

    Args:
        test: runs the tests of these files, of all for None, and returns the files with a test that failed.
    """
    stop, code = stop or threading.Event(), NOTHING_FOUND
    before, changed, failed = stamps(paths), None, set[str]()
    with stopping_on_interrupt(stop.set):
        while True:
            try:
                failed = {*test(None if changed is None else changed | failed)}
                code = FOUND if failed else NOTHING_FOUND
            except (DiagnosticsError, UsageError) as error:
                rendered = [finding.render() for finding in getattr(error, "diagnostics", ())]
                print("\n\n".join(rendered) or f"tocsin: {error}", file=sys.stderr)
                failed |= changed or set()
                code = FOUND
            print(f"-- looking at {count(len(before), 'rule file')}; Ctrl-C ends", file=sys.stderr, flush=True)
            while (now := stamps(paths)) == before:
                if stop.wait(LOOK_S):
                    return code
            changed = {str(path) for path in now.keys() | before.keys() if now.get(path) != before.get(path)}
            before = now
