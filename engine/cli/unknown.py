"""ERROR and FATAL events that no rule knows, grouped by what they have in common: the raw material of new rules."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from engine.model.matches import Match
from engine.model.records import AnyEvent
from engine.model.redaction import Redact

LEVELS = ("FATAL", "ERROR")  # worst first
# in every event of these levels, whoever wrote it
ERROR_SIGN = r"(?i)error|fatal|severe|critical|emergency|alert|\berr\b|\bcrit\b|\bemerg\b|\bfail: |\bE! "
COMPONENT_LINE = "component:"  # what the rule ids of lines begin with in which a component names itself
MOST_GROUPS = 20
MOST_CLUSTERS = 500  # kept while reading; the least recently seen are forgotten beyond
SAMPLE_CHARACTERS = 1000


class UnknownLines(Struct, frozen=True):
    """Unmatched events of one shape: `template` has `<*>` where they differ, `sample` is the first of them, redacted."""

    template: str
    count: int
    level: str
    sample: str

    @property
    def draft(self) -> str:
        """Return a shell command that drafts a rule from the sample's first line; empty when there is no sample."""
        first, *_ = self.sample.splitlines() or [""]
        return f"printf '%s\\n' {shlex.quote(first)} | tocsin rules new" if first else ""


class UnknownEvents:
    """Collects unmatched ERROR and FATAL events and groups them by template (drain3, loaded with the first one)."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._miner: Any = None
        self._seen: dict[int, tuple[str, str]] = {}  # cluster: worst level, first text

    def observe(self, event: AnyEvent, matches: Sequence[Match]) -> None:
        """Take one event in, unless it is no error or a rule matched it; a component naming itself is no rule."""
        if event.level not in LEVELS or any(not match.rule_id.startswith(COMPONENT_LINE) for match in matches):
            return
        message = self._redact(event.message)
        cluster, _ = self._drain().add_log_message(message)
        level, sample = self._seen.get(cluster.cluster_id, (event.level, ""))
        worst = min(level, event.level, key=LEVELS.index)
        self._seen[cluster.cluster_id] = (worst, sample or self._redact(event.text)[:SAMPLE_CHARACTERS])

    def groups(self) -> tuple[UnknownLines, ...]:
        """Return the largest groups, most severe level first, then most frequent."""
        if self._miner is None:
            return ()
        found = [UnknownLines(c.get_template(), c.size, *self._seen[c.cluster_id]) for c in self._miner.clusters]
        found.sort(key=lambda group: (LEVELS.index(group.level), -group.count, group.template))
        return tuple(found[:MOST_GROUPS])

    def _drain(self) -> Any:
        if self._miner is None:
            from drain3.drain import Drain  # noqa: PLC0415  (0.1 s of CPU that a log without unknown errors need not pay)

            self._miner = Drain(max_clusters=MOST_CLUSTERS)
        return self._miner
