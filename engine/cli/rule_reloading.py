"""Reload rule files that change while a job runs: valid rules replace the old ones, errors are reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.cli.watching import FileWatch
from engine.errors import RulesError, TocsinError
from engine.model.diagnostics import Diagnostic
from engine.model.rules import Plan

SHOWN = 5  # diagnostics that are reported of files with errors


class RuleReloader:
    """Polls the files of `paths`. A change is loaded only when the files are the same in two polls: they may still be written.

    Args:
        plan: the current plan.
        load: returns the plan of the files; raises TocsinError when they have errors.
        say: takes a sentence about each change, once, with the errors when it was refused.
        clock: a monotonic clock, in seconds.
        requested: once it is set, the files are loaded at once, and the result is reported even without a change.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        plan: Plan,
        load: Callable[[], Plan],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        requested: threading.Event | None = None,
    ) -> None:
        self._watch, self._load, self._say = FileWatch(paths, clock), load, say
        self._requested = requested or threading.Event()
        self._hash, self._is_valid = plan.hash, True

    def poll(self) -> Plan | None:
        """Return the plan of changed files, once; None while there is no change, or a change with errors."""
        if self._requested.is_set():
            return self._reload()
        if not self._watch.has_changed():
            return None
        return self._load_changed()

    def _reload(self) -> Plan | None:
        self._requested.clear()
        self._watch.take()
        plan = self._load_changed()
        if plan is None and self._is_valid:
            self._say("the rules have been read again: none has changed")
        return plan

    def _load_changed(self) -> Plan | None:
        self._is_valid = False
        try:
            plan = self._load()
        except TocsinError as error:
            self._refuse(error)
            return None
        self._is_valid = True
        if plan.hash == self._hash:
            return None
        self._hash = plan.hash
        self._say(
            f"the rules have changed: {len(plan.signatures)} signatures, {len(plan.correlations)} correlations from now on"
        )
        return plan

    def _refuse(self, error: TocsinError) -> None:
        diagnostics = error.diagnostics if isinstance(error, RulesError) else ()
        self._say(f"the rules have changed and are wrong, so the job goes on with those before: {error}")
        say_first(diagnostics, self._say, "tocsin rules lint")


def say_first(diagnostics: Sequence[Diagnostic], say: Callable[[str], None], command: str) -> None:
    """Say the first diagnostics of changed files, and by which command all are listed if there are more."""
    for diagnostic in diagnostics[:SHOWN]:
        say(diagnostic.render())
    if len(diagnostics) > SHOWN:
        say(f"and {len(diagnostics) - SHOWN} more: see `{command}`")
