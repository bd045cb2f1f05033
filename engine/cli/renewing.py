"""Rule files that change while a job runs: the new rules when they are sound, else why the old ones stay."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.dsl.files import stamps
from engine.errors import RulesError, TocsinError
from engine.model.rules import Plan

LOOK_EVERY_S = 2.0
SHOWN = 5  # findings of a broken edit


class Renewing:
    """Looks at the files of `paths` now and then. Files that are being written are left until they rest.

    Args:
        load: returns the plan of these files; raises TocsinError when they are wrong.
        say: is told of each change once, and why it was not taken.
        asked: once it is set the files are read at once, rest or not, and what came of that is said in any case.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        plan: Plan,
        load: Callable[[], Plan],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        asked: threading.Event | None = None,
    ) -> None:
        self._paths, self._load, self._say, self._clock = paths, load, say, clock
        self._asked = asked or threading.Event()
        self._hash, self._sound = plan.hash, True
        self._judged = self._seen = stamps(paths)
        self._looked = clock()

    def renewed(self) -> Plan | None:
        """Return the plan of files that have changed, once; None while nothing has, or what has is wrong."""
        if self._asked.is_set():
            return self._read_again()
        if self._clock() - self._looked < LOOK_EVERY_S:
            return None
        self._looked = self._clock()
        before, self._seen = self._seen, stamps(self._paths)
        if self._seen == self._judged or self._seen != before:
            return None
        self._judged = self._seen
        return self._loaded()

    def _read_again(self) -> Plan | None:
        self._asked.clear()
        self._judged = self._seen = stamps(self._paths)
        plan = self._loaded()
        if plan is None and self._sound:
            self._say("the rules have been read again: none has changed")
        return plan

    def _loaded(self) -> Plan | None:
        self._sound = False
        try:
            plan = self._load()
        except TocsinError as error:
            self._refuse(error)
            return None
        self._sound = True
        if plan.hash == self._hash:
            return None
        self._hash = plan.hash
        self._say(
            f"the rules have changed: {len(plan.signatures)} signatures, {len(plan.correlations)} correlations from now on"
        )
        return plan

    def _refuse(self, error: TocsinError) -> None:
        found = error.diagnostics if isinstance(error, RulesError) else ()
        self._say(f"the rules have changed and are wrong, so the job goes on with those before: {error}")
        for each in found[:SHOWN]:
            self._say(each.render())
        if len(found) > SHOWN:
            self._say(f"and {len(found) - SHOWN} more: see `tocsin rules lint`")
