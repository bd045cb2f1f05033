"""Logs made of real ones: the events of samples/goodlog, tests/captured and the posted logs of tests/corpus, drawn at random.

An event is quiet or a hit: a hit matches a shipped rule. Its stamp goes on from that of the event before, and its long numbers
are its own. Nothing in these logs was written for measuring. What none of these logs has, has no log here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random

from engine.match.matcher import matcher_of
from engine.model.records import RawLine
from engine.parse import assemble, decode, unwrap
from engine.parse.headers import header_book
from tests.corpus.cases import cases
from tests.rulepack.playing import SAMPLES, plan
from tests.wrapping import mingled, wrapped

CAPTURED = Path(__file__).parents[1] / "captured"
ACCESS = "access log"
LAYOUTS = {  # of one log: the formats in rules/formats whose events it has
    "plain broker": ("log4j-bracket",),
    "Spring": ("spring-boot",),
    "klog": ("klog",),
    ACCESS: (ACCESS,),
}
MIXED = 11  # layouts: those with most events
SERVICES = 6
LEAST = 5  # events of a layout
START = datetime(2026, 1, 1)

_STAMPS = (
    (re.compile(r"\b20\d\d-\d\d-\d\d([ T])\d\d:\d\d:\d\d"), "%Y-%m-%d{}%H:%M:%S"),
    (re.compile(r"(?<=^[IWEF])\d{4}( )\d\d:\d\d:\d\d"), "%m%d{}%H:%M:%S"),
    (re.compile(r"\b\d\d/[A-Z][a-z]{2}/20\d\d(:)\d\d:\d\d:\d\d"), "%d/%b/%Y{}%H:%M:%S"),
    (re.compile(r"\b20\d\d/\d\d/\d\d( )\d\d:\d\d:\d\d"), "%Y/%m/%d{}%H:%M:%S"),
)
_NUMBER = re.compile(r"(?<![\w.:+-])\d{3,9}(?![\w.:-])")

_REQUEST = re.compile(r'[\w.:]+ - \S+ \[\d\d/[A-Z][a-z]{2}/20\d\d:[^]\n]+\] "[A-Z]+ \S+ HTTP/[\d.]+" \d{3} \d+[^(\n]*(?= \()')

Pool = tuple[Sequence[str], Sequence[str]]  # quiet events, hits


@cache
def pools() -> Mapping[str, Pool]:
    """Return the events of all real logs by the name of their format, each once."""
    rules = plan()
    matcher, book = matcher_of(rules), header_book(rules.formats)
    pools: dict[str, tuple[dict[str, None], dict[str, None]]] = defaultdict(lambda: ({}, {}))
    for log in _logs():
        lines = (RawLine("log", at, line.encode("utf-8", "replace"), at + 1) for at, line in enumerate(log.splitlines()))
        for event in decode(assemble(unwrap(lines, rules.formats), rules.formats), rules.formats):
            request = _REQUEST.search(event.text)
            if request is not None:  # as a server writes it into a file of its own
                pools[ACCESS][False][request[0]] = None
            header = book.find(event.text.partition("\n")[0])
            if header is None or not any(stamp.search(event.text[:60]) for stamp, _ in _STAMPS):
                continue
            ids = {match.rule_id for match in matcher.match_event(event)}
            hit = any(not id_.startswith(("component:", "config:")) for id_ in ids)
            pools[header.name][hit][event.text] = None
    return {name: (list(quiet), list(hits)) for name, (quiet, hits) in pools.items()}


def _logs() -> Iterator[str]:
    for path in sorted((*(SAMPLES / "goodlog").rglob("*.log"), *CAPTURED.rglob("*.log"))):
        yield path.read_text(encoding="utf-8", errors="replace")
    yield from (case.log for case in cases().values())


def of_layouts(formats: Sequence[str], hits: float, seed: int = 1) -> Iterator[str]:
    """Yield the lines of an endless log, whose events are drawn from the formats in turn; the share `hits` of them are hits.

    Raises LookupError when no log has such events.
    """
    random, at = Random(seed), START
    choices = [pools().get(name, ((), ())) for name in formats]
    for quiet, bad in choices:
        if (hits < 1 and len(quiet) < LEAST) or (hits > 0 and len(bad) < LEAST):
            raise LookupError(f"no real log has enough events of {', '.join(formats)}")
    while True:
        quiet, bad = random.choice(choices)
        at += timedelta(milliseconds=random.randrange(1, 300))
        yield from _moved(random.choice(bad if random.random() < hits else quiet), at, random).split("\n")


def _moved(event: str, at: datetime, random: Random) -> str:
    """Return an event with another stamp, and with other numbers around it."""
    matches = ((stamp.search(event[:60]), form) for stamp, form in _STAMPS)
    match, form = next((match, form) for match, form in matches if match is not None)
    before, behind = (
        _NUMBER.sub(lambda number: "".join(random.choices("0123456789", k=len(number[0]))), text)
        for text in (event[: match.start()], event[match.end() :])
    )
    return f"{before}{at.strftime(form.format(match[1]))}{behind}"


def mixed_layouts(hits: float) -> Iterator[str]:
    """Yield the lines of a log in MIXED layouts."""
    usable = [name for name, pool in pools().items() if min(map(len, pool)) >= LEAST]
    return of_layouts(sorted(usable, key=lambda name: -sum(map(len, pools()[name])))[:MIXED], hits)


def services(hits: float) -> Iterator[str]:
    """Yield what Compose prints of SERVICES services: brokers and programs in other layouts."""
    layouts = ("plain broker", "Spring")
    logs = [of_layouts(LAYOUTS[layouts[number % 2]], hits, number) for number in range(SERVICES)]
    rows = [wrapped(log, ("compose",), Random(number)) for number, log in enumerate(logs)]
    return mingled([_renamed(log, f"service-{number}") for number, log in enumerate(rows)], Random(1))


def _renamed(rows: Iterator[str], name: str) -> Iterator[str]:
    return (re.sub(r"^\S+", name, row, count=1) for row in rows)
