"""Audits columns at run time: some blocks are also read by the reference, and both must say the same.

A block is judged by itself, as if its source began and ended with it. Where the two differ, lines are left out as long as they
still do, so that the report has the smallest input that reproduces it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec import Struct

from engine.columns.classes import BAD_LEVELS
from engine.columns.reading import Reader
from engine.correlate.bindings import SIGHTINGS
from engine.correlate.spans import Spans
from engine.match import match
from engine.model.matches import COMPONENT_LINE, SEEN_GAP_S, ActivitySpan, Match
from engine.model.records import LogEvent, RawLine
from engine.model.rules import Plan
from engine.parse import assemble, decode, unwrap
from engine.ports import Chunk
from engine.quarantine import OF_THE_HOST

AUDIT_EVERY = 16  # blocks: one of them is audited, the first always
MOST_ATTEMPTS = 200  # at leaving lines out
SHOWN = 3  # facts of each way in the report of a difference
UNMATCHED = "unmatched "  # begins the fact of an error that no rule matches


class AuditDifference(Struct, frozen=True):
    """Columns and the reference differ on `lines`, which follow each other in a source but may have others between them.

    `columns` and `reference` are what only one of the two says. All texts may hold secrets.
    """

    source_id: str
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    reference: tuple[str, ...]

    def sentence(self, redact: Callable[[str], str]) -> str:
        """Return the report: what differs, and the input that shows it, without secrets."""
        parts = [
            f"'{self.source_id}': columns and the reference differ; report this with the following input",
            *(f"only by columns: {item}" for item in self.columns[:SHOWN]),
            *(f"only by the reference: {item}" for item in self.reference[:SHOWN]),
            *self.lines,
        ]
        return redact("\n".join(parts))


class ReadFacts:
    """The results of reading, in a form that can be compared."""

    def __init__(self) -> None:
        self.unknown: Counter[tuple[str, str, str]] = Counter()
        self.matches: Counter[str] = Counter()
        self.spans: dict[str, Spans] = {}
        self._naming: dict[
            str, set[str]
        ] = {}  # ids of events in which a source prints its component id, by source, rule and captures

    def observe(self, event: LogEvent, matches: list[Match]) -> None:
        """Add an error that no rule matches."""
        if event.level in BAD_LEVELS and all(match.rule_id.startswith(COMPONENT_LINE) for match in matches):
            self.unknown[event.level, event.message, event.text] += 1

    def take(self, items: Iterable[object]) -> ReadFacts:
        """Add matches and activity spans."""
        for item in items:
            if isinstance(item, ActivitySpan):
                place = None if item.place is None else (item.place, item.place)
                self.spans.setdefault(item.source_id, Spans(timedelta(seconds=SEEN_GAP_S))).add(item.first, item.last, place)
            elif isinstance(item, Match) and item.rule_id.endswith("/names"):
                kind = repr((item.source_id, item.rule_id, sorted(item.captures.items())))
                self._naming.setdefault(kind, set()).add(item.event_id)
            else:
                self.matches[repr(item)] += 1
        return self

    def facts(self) -> Counter[str]:
        """Return all of it as sentences. Of lines in which a source names itself only as many count as correlation needs."""
        facts = Counter({f"match {text}": count for text, count in self.matches.items()})
        facts.update({f"{UNMATCHED}{' '.join(error)}": count for error, count in self.unknown.items()})
        facts.update({f"naming {kind}": min(len(ids), SIGHTINGS) for kind, ids in self._naming.items()})
        for source_id, spans in self.spans.items():
            facts[f"activity of {source_id}: {list(spans)} {list(spans.places)}"] += 1
        return facts


class AuditResult(Struct, frozen=True):
    """The audited blocks of a part of the input: how many, and the report of each difference, without secrets."""

    blocks: int
    differences: tuple[str, ...] = ()


class Audit:
    """Audits one block in `every` of those that readers with the same rules read.

    Args:
        errors: also compare the errors that no rule matches; columns decide those only if LearntTexts was told to (`also`).

    Attributes:
        blocks: the number of audited blocks.
        differences: the differences, at most one a block.
    """

    def __init__(self, plan: Plan, every: int = AUDIT_EVERY, errors: bool = True) -> None:
        self._plan, self._every, self._errors, self._seen = plan, every, errors, 0
        self.blocks = 0
        self.differences: list[AuditDifference] = []

    def block(self, reader: Reader, chunks: Sequence[Chunk]) -> None:
        """Audit a block that `reader` reads, if it is its turn. The reader is not changed, except for what it learns."""
        self._seen += 1
        if (self._seen - 1) % self._every:
            return
        self.blocks += 1
        lines = [line for chunk in chunks for line in chunk.lines()]
        facts = self._facts(reader, lines, chunks)
        if facts is None:
            return
        lines, columns, reference = self._smallest(reader, lines, facts)
        texts = tuple(line.value.decode("utf-8", "replace") for line in lines)
        only = tuple(sorted(columns - reference)), tuple(sorted(reference - columns))
        self.differences.append(AuditDifference(chunks[0].source_id, texts, *only))

    def taken(self, redact: Callable[[str], str]) -> AuditResult:
        """Return the result since the last call, and begin another one."""
        result = AuditResult(self.blocks, tuple(difference.sentence(redact) for difference in self.differences))
        self.blocks, self.differences = 0, []
        return result

    def _smallest(
        self, reader: Reader, lines: list[RawLine], facts: tuple[Counter[str], Counter[str]]
    ) -> tuple[list[RawLine], Counter[str], Counter[str]]:
        """Leave out lines, in ever smaller pieces, as long as the rest still differs; return the rest and its facts."""
        size, attempts = len(lines) // 2, 0
        while size and attempts < MOST_ATTEMPTS:
            for begin in range(0, len(lines), size):
                rest = [*lines[:begin], *lines[begin + size :]]
                attempts += 1
                if rest and (smaller := self._facts(reader, rest)) is not None:
                    lines, facts = rest, smaller
                    break
            else:
                size //= 2
        return lines, *facts

    def _facts(
        self, reader: Reader, lines: Sequence[RawLine], chunks: Sequence[Chunk] = ()
    ) -> tuple[Counter[str], Counter[str]] | None:
        """Return what columns and the reference make of some lines; None when that is the same, or a stage raises: then the
        lines are quarantined either way."""
        try:
            reference = by_stages(self._plan, lines)
        except OF_THE_HOST:
            raise
        except Exception:
            return None
        columns = by_columns(reader, chunks or list(_chunks(lines)))
        if not self._errors:
            columns, reference = _without_errors(columns), _without_errors(reference)
        return None if columns == reference else (columns, reference)


def _without_errors(facts: Counter[str]) -> Counter[str]:
    return Counter({fact: count for fact, count in facts.items() if not fact.startswith(UNMATCHED)})


def by_columns(reader: Reader, chunks: Sequence[Chunk]) -> Counter[str]:
    """Return what columns make of `chunks`, with what `reader` has learnt; an error is part of it."""
    facts = ReadFacts()
    twin = reader.twin(facts.observe, enough=2)
    try:
        facts.take(twin.read(chunks)).take(twin.end())
    except OF_THE_HOST:
        raise
    except Exception as error:
        return Counter({f"error {error!r}": 1})
    return facts.facts()


def by_stages(plan: Plan, lines: Iterable[RawLine]) -> Counter[str]:
    """Return what the stages of engine/pipeline make of `lines`."""
    facts = ReadFacts()
    events = decode(assemble(unwrap(lines, plan.formats), plan.formats), plan.formats)
    return facts.take(match(events, plan, facts.observe)).facts()


def _chunks(lines: Sequence[RawLine]) -> Iterator[Chunk]:
    for line in lines:
        yield Chunk(line.source_id, line.offset, line.value + b"\n", line.number, line.ingested_at, line.labels)
