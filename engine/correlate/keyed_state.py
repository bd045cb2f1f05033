"""The state machine of one rule in one scope. No clock, no I/O, no threads.

A correlation type is a subclass: it takes matches, returns verdicts, and names the cells of its state. This base handles dirty
entities, the changes since the state was stored, and the restore, for all types alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Raw

from engine.codec import dumps, loads
from engine.correlate.emissions import Emissions
from engine.correlate.facts import Facts, RuleNotEvaluated
from engine.correlate.timers import Timers
from engine.model.incidents import Alert, Evidence, Verdict
from engine.model.matches import Match
from engine.model.rules import Rule


class StateCell(Protocol):
    """A part of a rule's state that is stored under a name of its own."""

    @property
    def dirty(self) -> bool:
        """Whether the state has to be stored because of this cell."""

    def stored(self) -> object:
        """Return everything in it, for `engine.codec`; it is not dirty from then on."""

    def changes(self) -> object | None:
        """Return the changes since the last `stored`, `changes` or `restore`; None: a full copy must be stored."""

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned. Raises msgspec's DecodeError when it cannot be read."""

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned after that."""


class KeyedState(ABC):
    """The state of one rule in one scope, by entity.

    Matches may come in any order and more than once: verdicts depend on the set of them alone. A type implements `on_match`,
    `verdicts` and `snapshot`, and `on_watermark` if time changes its verdicts; the other hooks have defaults.

    Attributes:
        listens: ids of the rules whose matches it takes.
        follows_clocks: whether it is evaluated whenever any source has moved, not only after a match or a timer.
    """

    follows_clocks = False

    def __init__(self, rule: Rule, listens: Iterable[str]) -> None:
        self.rule = rule
        self.listens = frozenset(listens)
        self.emissions = Emissions()
        self.timers = Timers()

    @property
    def rule_id(self) -> str:
        """The id of the rule, under which its state is stored."""
        return self.rule.id

    @property
    def full(self) -> bool:
        """Whether it must be evaluated before it takes another match: a bound might drop what has not been evaluated yet."""
        return False

    @abstractmethod
    def on_match(self, match: Match, facts: Facts) -> None:
        """Take a match of one of the rules it listens to."""

    def on_retract(self, match: Match, facts: Facts) -> None:  # noqa: B027
        """Retract a match: its event has more lines, and is matched again at the same time. Without effect by default."""

    def on_watermark(self, facts: Facts) -> None:  # noqa: B027
        """Mark the entities to evaluate because the watermark or the bindings have changed; called before `verdicts`."""

    @abstractmethod
    def verdicts(self, facts: Facts) -> Iterator[Verdict]:
        """Yield the verdicts of all entities that may have changed, by entity; equal ones are not emitted again."""

    @abstractmethod
    def snapshot(self) -> Mapping[str, StateCell]:
        """Return the cells that its state is made of, by the name that each is stored under; always the same objects."""

    def evidence(self, alerts: Sequence[Alert]) -> Iterator[Evidence]:
        """Yield the events that prove `alerts` and are not among the matches since the last flush."""
        yield from ()

    def not_evaluated(self, facts: Facts) -> Iterable[RuleNotEvaluated]:
        """Return what this rule cannot evaluate, and why."""
        return ()

    def findings(self, facts: Facts) -> Iterator[Verdict | Evidence]:
        """Evaluate the entities that have changed; yield every verdict that differs from the last one of its entity, after its
        evidence."""
        self.on_watermark(facts)
        for verdict in self.verdicts(facts):
            if self.emissions.is_news(verdict.key[2], verdict.alerts, facts):
                yield from self.evidence(verdict.alerts)
                yield verdict

    @property
    def dirty(self) -> bool:
        """Whether the state has changed since it was stored or restored."""
        return any(cell.dirty for cell in self._cells().values())

    def encode(self) -> str:
        """Return the whole state as JSON."""
        return dumps({name: cell.stored() for name, cell in self._cells().items()})

    def encode_changes(self) -> str | None:
        """Return, as JSON, the changes since the last `encode`, `encode_changes` or `restore`; None: encode the full state."""
        changes = {name: cell.changes() for name, cell in self._cells().items()}
        return None if None in changes.values() else dumps(changes)

    def restore(self, encoded: str, *changes: str) -> None:
        """Continue from an encoded state and the changes after it, in order; called at most once, before anything else.

        Raises msgspec's DecodeError when they cannot be read.
        """
        cells = self._cells()
        for name, raw in loads(encoded, dict[str, Raw]).items():
            cells[name].restore(bytes(raw))
        for change in changes:
            for name, raw in loads(change, dict[str, Raw]).items():
                cells[name].apply(bytes(raw))

    def _cells(self) -> dict[str, StateCell]:
        return {**self.snapshot(), "emissions": self.emissions, "timers": self.timers}
