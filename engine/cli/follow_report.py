"""Show on a terminal, or as JSON lines, what `tocsin scan --follow` finds, until Ctrl-C."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from rich.text import Text

from connectors.files import STDIN, find
from engine.cli.exits import INTERRUPTED
from engine.cli.following import LOOK_S, FollowedChange, FollowedLook, LogFollower
from engine.cli.output import count
from engine.cli.report import entity, render_incident
from engine.cli.signals import stopping_on_interrupt
from engine.cli.terminal import show
from engine.cli.windows import shown_in
from engine.errors import SourceMissing, UsageError
from engine.model.answers import incident_value, iso
from engine.model.notifications import Reason
from engine.model.phrases import lasting, moment
from engine.model.records import Labels
from engine.model.rules import Plan
from engine.model.visible import visible

ALIVE_EVERY_S = 300.0


def follow_files(paths: Sequence[str], labels: Labels, plan: Plan, zone: ZoneInfo, as_json: bool) -> int:
    """Follow `paths` until Ctrl-C, and report what was found by then; return the exit code.

    Raises UsageError for standard input, SourceMissing when there is nothing to follow yet and no pattern for it.
    """
    if STDIN in paths:
        raise UsageError("--follow takes files: what comes through a pipe ends with it")
    listing = find(paths)
    if not listing.files and listing.errors:
        raise SourceMissing("; ".join(map(str, listing.errors)))
    follower, stop = LogFollower(paths, labels, plan), threading.Event()
    printing = FollowPrinter(zone, as_json)
    with stopping_on_interrupt(stop.set):
        while not stop.is_set():
            look = follower.look()
            printing.take(look)
            if look.is_end:
                stop.wait(LOOK_S)
    printing.end(follower)
    return INTERRUPTED


class FollowPrinter:
    """Prints changes on stdout, and sentences about the input, and now and then that it is alive, on stderr."""

    def __init__(self, zone: ZoneInfo, as_json: bool) -> None:
        self._zone, self._as_json = zone, as_json
        self._started_s = self._heard_s = self._alive_s = time.monotonic()
        self._lines = 0
        self._has_caught_up = False

    def take(self, look: FollowedLook) -> None:
        """Print what a look gave."""
        for sentence in look.sentences:
            _say(sentence)
        for change in look.changes:
            self._print(change)
        sys.stdout.flush()
        now_s = time.monotonic()
        if look.lines:
            self._heard_s = self._alive_s = now_s
        self._lines += look.lines
        if not self._has_caught_up and look.is_end:
            self._has_caught_up = True
            _say(f"{count(self._lines, 'line')} read; following from here on, Ctrl-C ends it")
        elif now_s - self._alive_s >= ALIVE_EVERY_S:
            self._alive_s = now_s
            _say(f"following; the last line came {lasting(timedelta(seconds=now_s - self._heard_s))} ago")

    def end(self, follower: LogFollower) -> None:
        """Print what was found until the end."""
        lasted = lasting(timedelta(seconds=time.monotonic() - self._started_s))
        incidents = follower.incidents
        _say(f"followed for {lasted}: {count(follower.lines, 'line')}, {count(len(incidents), 'incident')}")
        for incident in () if self._as_json else incidents:
            since = moment(incident.first_seen.astimezone(self._zone)) if incident.first_seen else "no time in its lines"
            print(
                visible(
                    f"{incident.severity:8}  {incident.status:8}  {since}  {incident.title}  {entity(incident.labels)}".rstrip()
                )
            )

    def _print(self, change: FollowedChange) -> None:
        incident = shown_in(change.incident, self._zone)
        if self._as_json:
            value = {
                "at": iso(datetime.now(UTC).replace(microsecond=0)),
                "reason": change.reason.value,
                "news": change.news,
                "incident": incident_value(change.incident),
            }
            print(json.dumps(value, ensure_ascii=False))
        elif change.reason in (Reason.OPENED, Reason.REOPENED):
            show(lambda width: render_incident(incident, width).append("\n"))
        else:
            line = f"{incident.title}  {entity(incident.labels)}".rstrip()
            show(lambda width: Text(visible(f"{change.news}: {line}\n")))


def _say(sentence: str) -> None:
    print(f"tocsin: {visible(sentence)}", file=sys.stderr, flush=True)
