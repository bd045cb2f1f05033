"""Group ERROR and FATAL events that no rule matches by their templates: new rules can be drafted from them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from engine.model.matches import COMPONENT_LINE, Match
from engine.model.records import AnyEvent
from engine.model.redaction import Redact

LEVELS = ("FATAL", "ERROR")  # worst first
# matches every event of these levels, whatever its format
ERROR_SIGN = r"(?i)error|fatal|severe|critical|emergency|alert|\berr\b|\bcrit\b|\bemerg\b|\bfail: |\bE! "
MOST_GROUPS = 20
MOST_CLUSTERS = 500  # kept while reading; the least recently seen are forgotten beyond
SAMPLE_CHARACTERS = 1000


class UnknownLines(Struct, frozen=True):
    """Unmatched events with one template, which has `<*>` where they differ. `level` is the worst; `sample` is the first event,
    redacted."""

    template: str
    count: int
    level: str
    sample: str

    @property
    def draft(self) -> str:
        """The shell command that drafts a rule from the first line of the sample; empty without a sample."""
        first, *_ = self.sample.splitlines() or [""]
        return f"printf '%s\\n' {shlex.quote(first)} | tocsin rules new" if first else ""


class UnknownEvents:
    """Collects unmatched ERROR and FATAL events and groups them by template (drain3, loaded with the first one)."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._miner: Any = None
        self._samples: dict[int, tuple[str, str]] = {}  # cluster: worst level, first text

    def observe(self, event: AnyEvent, matches: Sequence[Match]) -> None:
        """Add an event if it is an error that no rule matched; a match of a line in which a component names itself does not
        count."""
        if event.level not in LEVELS or any(not match.rule_id.startswith(COMPONENT_LINE) for match in matches):
            return
        message = self._redact(event.message)
        cluster, _ = self._drain().add_log_message(message)
        level, sample = self._samples.get(cluster.cluster_id, (event.level, ""))
        worst = min(level, event.level, key=LEVELS.index)
        self._samples[cluster.cluster_id] = (worst, sample or self._redact(event.text)[:SAMPLE_CHARACTERS])

    def groups(self) -> tuple[UnknownLines, ...]:
        """Return the largest groups, most severe level first, then most frequent."""
        if self._miner is None:
            return ()
        groups = [UnknownLines(c.get_template(), c.size, *self._samples[c.cluster_id]) for c in self._miner.clusters]
        groups.sort(key=lambda group: (LEVELS.index(group.level), -group.count, group.template))
        return tuple(groups[:MOST_GROUPS])

    def _drain(self) -> Any:
        if self._miner is None:
            from drain3.drain import Drain  # noqa: PLC0415  (0.1 s of CPU that a log without unknown errors need not pay)

            self._miner = Drain(max_clusters=MOST_CLUSTERS)
        return self._miner
