"""Cuts the logs of a history down to what a test can keep: `python -m tests.lab.cutting LOGS NAME` writes tests/captured/NAME.

Of each file it keeps what the rules know, thinned where a line repeats, and one of everything else as long as there is room,
the latest first. It ends with 1 when what is left is judged otherwise than the whole.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.match import match
from engine.model.matches import Match
from engine.parse import assemble, decode, unwrap
from tests.lab.faults import CAPTURED, LAB, judged
from tests.rulepack.playing import Story, lines_of, plan

MAX_LINES, MAX_BYTES = 390, 59_000
FRAMES = 12  # of each stack trace
AT_BOTH_ENDS = 1
NAMES = 3
TOLD_APART_BY = 100  # letters
_HEADER = re.compile(r"\[?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}\]? ")
_NUMBERS = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])|[0-9]+|true|false")
_DUMP = re.compile(r" values: *(\(|$)")


class Event(Struct, frozen=True):
    """A line with those that belong to it; `number` is where it stands in its file, `known` whether a rule knows it."""

    file: str
    number: int
    at: datetime
    lines: tuple[str, ...]
    known: bool = False

    @property
    def template(self) -> tuple[str, str]:
        """What is the same in lines that differ by numbers, ids and how they end, file by file."""
        return self.file, _NUMBERS.sub("#", _HEADER.sub("", self.lines[0], count=1))[:TOLD_APART_BY]


def kept(logs: Mapping[str, str]) -> Mapping[str, str]:
    """Return the logs, cut until they fit."""
    events = [event for name, text in logs.items() for event in _events(name, text)]
    known = set(_known(logs))
    marked = [replace(event, known=(event.file, event.number) in known) for event in events]
    for seconds in (1, 2, 5, 10, 20, 40, 80, 160):
        chosen = _thinned(marked, timedelta(seconds=seconds))
        if _fit(chosen):
            break
    more = sorted(_one_of_each(marked, chosen), key=lambda event: event.at, reverse=True)
    for event in more:
        if _fit([*chosen, event]):
            chosen.append(event)
    chosen.sort(key=lambda event: event.number)
    return {name: "".join(line for e in chosen if e.file == name for line in e.lines) for name in logs}


def _events(name: str, text: str) -> Iterator[Event]:
    """Yield the events of a log, without the values of configurations and most frames of stack traces."""
    lines = text.splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if _HEADER.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        stamp = _HEADER.match(lines[start])
        assert stamp is not None
        at = datetime.fromisoformat(stamp[1]).replace(tzinfo=UTC)
        yield Event(name, start + 1, at, (lines[start], *_shortened(lines[start], lines[start + 1 : end])))


def _shortened(head: str, rest: Sequence[str]) -> Iterator[str]:
    frames = 0
    for line in () if _DUMP.search(head) else rest:
        frames = frames + 1 if line.startswith("\tat ") else 0
        if frames <= FRAMES:
            yield line


def _known(logs: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield file and line of what a rule matches, and of the first lines in which each file says whose it is."""
    records = unwrap(lines_of(Story(logs)), plan().formats)
    named: Counter[tuple[str, str]] = Counter()
    for found in match(decode(assemble(records, plan().formats), plan().formats), plan()):
        if isinstance(found, Match):
            said = found.source_id, found.rule_id
            named[said] += 1
            if found.rule_id in plan().rules() or named[said] <= NAMES:
                yield found.source_id, found.number


def _thinned(events: Iterable[Event], apart: timedelta) -> list[Event]:
    """Return what rules know: of each template the first and last ones, and between them no two closer than `apart`."""
    alike: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.known:
            alike.setdefault(event.template, []).append(event)
    return [event for same in alike.values() for event in _sparse(same, apart)]


def _sparse(same: Sequence[Event], apart: timedelta) -> Iterator[Event]:
    last = None
    for place, event in enumerate(same):
        at_an_end = place < AT_BOTH_ENDS or place >= len(same) - AT_BOTH_ENDS
        if at_an_end or last is None or event.at - last >= apart:
            last = event.at
            yield event


def _one_of_each(events: Iterable[Event], chosen: Iterable[Event]) -> Iterator[Event]:
    """Yield the last event of each template of which none is chosen."""
    has = {event.template for event in chosen}
    yield from {event.template: event for event in events if event.template not in has}.values()


def _fit(events: Sequence[Event]) -> bool:
    lines = [line for event in events for line in event.lines]
    return len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_BYTES


def main() -> int:
    """Cut one history."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.cutting", description="keep the logs of a history as a test")
    parser.add_argument("logs", type=Path)
    parser.add_argument("name", help="of the history: a folder of tests/captured")
    said = parser.parse_args()
    whole = {path.name: path.read_text(encoding="utf-8") for path in sorted(said.logs.glob("*.log"))}
    folder = CAPTURED / said.name
    for name, text in kept({name: text for name, text in whole.items() if text}).items():
        (folder / name).write_text(text.replace(f"{LAB / 'faults' / said.name}", "/srv/kafka"), encoding="utf-8")
    wrong = {"whole": judged(said.logs, said.name), "cut": judged(folder, said.name)}
    for what, sentences in wrong.items():
        print("\n".join(f"{what}: {sentence}" for sentence in sentences), file=sys.stderr)
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
