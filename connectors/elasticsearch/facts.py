"""Facts about a cluster and its indices, and the choice of the strategy that reads them, with its reason. Pure.

Three strategies, from the safest to the last resort:

- `sequence`: every shard numbers its operations; those up to the global checkpoint of the primary are read, each number once.
  No document is missed, however late it comes and whatever its stamps are.
- `ingested`: by `event.ingested`, which an ingest pipeline sets. Misses documents that become visible later than the overlap.
- `timestamp`: by `@timestamp`. Misses every line that comes later than the overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

MINUTE_S = 60.0
OVERLAP_S = {"ingested": 5 * MINUTE_S, "timestamp": 15 * MINUTE_S}
DELAY_S = 30.0  # for an interval between refreshes and a running bulk request
DEFAULT_REFRESH_S = 1.0


class Strategy(StrEnum):
    """The order in which documents are read."""

    SEQUENCE = "sequence"
    INGESTED = "ingested"
    TIMESTAMP = "timestamp"

    @property
    def field(self) -> str:
        """The field that documents are ordered by."""
        return {"sequence": "_seq_no", "ingested": "event.ingested", "timestamp": "@timestamp"}[self.value]


class ServerVersion(Struct, frozen=True):
    """The version of the server as numbers, and whether it is OpenSearch, or a serverless project of Elastic."""

    numbers: tuple[int, ...]
    is_opensearch: bool = False
    is_serverless: bool = False

    def __str__(self) -> str:
        """Return `Elasticsearch 9.5.3`."""
        name = "OpenSearch" if self.is_opensearch else "Elasticsearch"
        return f"{name} serverless" if self.is_serverless else f"{name} {'.'.join(map(str, self.numbers))}"


class IndexFacts(Struct, frozen=True):
    """A concrete index.

    `refresh_s`: the interval at which it refreshes itself; 0: never; None: the default, and then only while it is searched.
    `is_copy`: it was made of the documents of another index (a mounted snapshot, a shrunk index).
    """

    name: str
    uuid: str
    shards: int = 1
    created_ms: int = 0
    mode: str = ""
    numbered: bool = True  # sequence numbers can be searched for
    refresh_s: float | None = None
    is_open: bool = True
    is_frozen: bool = False
    is_copy: bool = False
    page_bound: int = 10_000

    @property
    def readable(self) -> bool:
        """Whether it can be searched."""
        return self.is_open and not self.is_frozen


class ClusterFacts(Struct, frozen=True):
    """Facts about a cluster and the indices that a pattern matches.

    `refused`: the missing privileges (`monitor`, `maintenance`), each with the server's reason. `has_ingested`: every document
    of the last day has `event.ingested`.
    """

    server: ServerVersion
    indices: tuple[IndexFacts, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    is_remote: bool = False
    has_ingested: bool = False

    def is_refused(self, privilege: str) -> bool:
        """Return whether a privilege is missing."""
        return any(name == privilege for name, _ in self.refused)


class StrategyChoice(Struct, frozen=True):
    """The chosen strategy and why; `misses`: which documents it misses; `warnings`: other sentences for the user."""

    strategy: Strategy
    reason: str
    misses: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The choice as a sentence for the user."""
        return "; ".join(filter(None, (f"read by {self.strategy.field} ({self.reason})", self.misses)))


def choose(facts: ClusterFacts, wanted: str = "", overlap_s: float | None = None) -> StrategyChoice:
    """Return the strategy for a cluster: the `wanted` one (empty: none), else the safest that is possible."""
    obstacle = _obstacle(facts)
    if wanted:
        strategy, reason = Strategy(wanted), "as configured"
        if strategy is Strategy.SEQUENCE and obstacle:
            reason = f"as configured, although {obstacle}"
    elif not obstacle:
        strategy, reason = Strategy.SEQUENCE, "no late document is missed"
    elif facts.has_ingested:
        strategy, reason = Strategy.INGESTED, obstacle
    else:
        strategy, reason = Strategy.TIMESTAMP, f"{obstacle}, and there are documents without event.ingested"
    return StrategyChoice(strategy, reason, _misses(strategy, overlap_s), tuple(_warnings(facts, strategy)))


def continued(
    choice: StrategyChoice, facts: ClusterFacts, before: Strategy, wanted: str = "", overlap_s: float | None = None
) -> StrategyChoice:
    """Return the choice for a source that earlier runs read by the strategy `before`: that one, unless another is `wanted`."""
    if choice.strategy is before:
        return choice
    if wanted:
        return replace(choice, warnings=(*choice.warnings, _changeover(facts, before, choice.strategy, overlap_s)))
    obstacle = _obstacle(facts)
    reason = f"as in earlier runs, although {obstacle}" if before is Strategy.SEQUENCE else "as in earlier runs"
    change = f"write `read_by: {choice.strategy}` to change to {choice.strategy.field}; unread documents are not missed by that"
    return StrategyChoice(before, reason, _misses(before, overlap_s), (*_warnings(facts, before), change))


def _changeover(facts: ClusterFacts, before: Strategy, after: Strategy, overlap_s: float | None) -> str:
    """Return the sentence about a source that changes its strategy."""
    if before is not Strategy.SEQUENCE:
        minutes = f"{overlap_of(before, overlap_s) / MINUTE_S:g} min"
        place = f"from {minutes} before its last time on"
    elif facts.is_refused("monitor"):
        return (
            f"earlier runs read it by {before.field}; the unread documents cannot be determined without the privilege"
            " `monitor`, so it begins again at `start`"
        )
    else:
        place = "from the oldest unread document on"
    return f"earlier runs read it by {before.field}; it changes to {after.field}, {place}; what is read twice counts once"


def _obstacle(facts: ClusterFacts) -> str:
    """Return why the strategy `sequence` is not possible, as a clause; empty when it is."""
    if facts.is_remote:
        return "a remote cluster does not report its checkpoints"
    if facts.server.is_serverless:
        return "a serverless project does not report its checkpoints"
    for name, reason in facts.refused:
        if name == "monitor":
            return f"the privilege `monitor` is missing ({reason})"
    unnumbered = [index.name for index in facts.indices if index.readable and not index.numbered]
    if unnumbered:
        return f"{_listed(unnumbered)} ha{'s' if len(unnumbered) == 1 else 've'} sequence numbers disabled"
    if facts.is_refused("maintenance"):
        unseen = [index.name for index in facts.indices if index.readable and index.refresh_s == 0]
        if unseen:
            return (
                f"{_listed(unseen)} never refresh{'es' if len(unseen) == 1 else ''} and the privilege `maintenance` is missing"
            )
    return ""


def _misses(strategy: Strategy, overlap_s: float | None) -> str:
    if strategy is Strategy.SEQUENCE:
        return ""
    minutes = f"{overlap_of(strategy, overlap_s) / MINUTE_S:g} min"
    if strategy is Strategy.INGESTED:
        return f"documents that become visible later than {minutes} after their event.ingested, or have none, will be missed"
    return f"LINES THAT COME LATER THAN {minutes} AFTER THEIR @timestamp, OR HAVE NONE, WILL BE MISSED"


def _warnings(facts: ClusterFacts, strategy: Strategy) -> Sequence[str]:
    warnings = []
    if not (facts.indices or facts.refused or facts.is_remote or facts.server.is_serverless):
        warnings.append("there is no index yet; check `indices`, and the privilege `view_index_metadata`")
    if strategy is Strategy.SEQUENCE and facts.is_refused("maintenance"):
        warnings.append(
            f"the privilege `maintenance` is missing: lines are read {lag_s(facts.indices):g} s late, once they are visible by"
            " themselves"
        )
    for names, state in (
        ([index.name for index in facts.indices if not index.is_open], "closed"),
        ([index.name for index in facts.indices if index.is_open and index.is_frozen], "frozen"),
    ):
        if names:
            warnings.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {state} and not read")
    return warnings


def overlap_of(strategy: Strategy, overlap_s: float | None) -> float:
    """Return how far before its position a strategy by time searches again for late documents, in seconds."""
    return OVERLAP_S[strategy.value] if overlap_s is None else overlap_s


def lag_s(indices: Sequence[IndexFacts]) -> float:
    """Return after how many seconds all operations up to a checkpoint are visible without a refresh by us."""
    longest = max((DEFAULT_REFRESH_S if index.refresh_s is None else index.refresh_s for index in indices), default=0.0)
    return max(longest, DEFAULT_REFRESH_S) + 2.0


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def index_facts(name: str, settings: dict[str, str]) -> IndexFacts:
    """Return the facts in the flat settings of an index."""
    values = {key.removeprefix("index."): value for key, value in settings.items()}
    mode = values.get("mode", "")
    return IndexFacts(
        name=name,
        uuid=values["uuid"],
        shards=int(values.get("number_of_shards", "1")),
        created_ms=int(values.get("creation_date", "0")),
        mode=mode,
        numbered=values.get("disable_sequence_numbers", "false") != "true",
        refresh_s=_refresh_s(values.get("refresh_interval")),
        is_open=values.get("verified_before_close", "false") != "true",
        is_frozen=values.get("frozen", "false") == "true" or values.get("store.snapshot.partial", "false") == "true",
        is_copy=values.get("store.type") == "snapshot" or "resize.source.uuid" in values or "shrink.source.uuid" in values,
        page_bound=int(values.get("max_result_window", "10000")),
    )


_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "micros": 1e-6, "nanos": 1e-9}


def _refresh_s(text: str | None) -> float | None:
    """Return an interval (`30s`, `-1`) in seconds; 0: never; None when `text` is None or no interval."""
    if text is None:
        return None
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(digits) :]
    try:
        return max(0.0, float(digits) * _UNITS_S.get(unit, 0.001))
    except ValueError:
        return None
