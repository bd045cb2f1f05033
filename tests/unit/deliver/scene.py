"""A notifier with a store, a clock that tests move, and incidents to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from msgspec.structs import replace

from engine.clock import SteadyClock
from engine.deliver import Notifier, Policy
from engine.model.incidents import Incident
from engine.model.notifications import Delivery
from engine.model.routes import Route
from engine.ports import Receiver
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident

START = datetime(2023, 2, 3, 2, 10, tzinfo=UTC)


@dataclass
class Scene:
    """Everything between the job's store and the receivers; `restart` is a new process on the same store."""

    store: Store
    receivers: Mapping[str, Receiver]
    policy: Policy = field(default_factory=lambda: Policy(Route("ops")))
    now: datetime = START
    off: timedelta = timedelta(0)  # of the machine's wall clock
    batches: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        edits, records, gatherers = (
            frozenset(name for name, receiver in self.receivers.items() if getattr(receiver, what))
            for what in ("edits", "records", "gathers")
        )
        policy = replace(self.policy, edits=edits, records=records, gatherers=gatherers)
        self.notifier = Notifier(self.store, policy, self.receivers, self.clock())

    def clock(self) -> SteadyClock:
        """Return a clock that a new process would have."""
        return SteadyClock(lambda: self.now + self.off, self._elapsed_s)

    def _elapsed_s(self) -> float:
        return (self.now - START).total_seconds()

    def put(self, **changes: Any) -> Incident:
        """Let the job store a revision."""
        made = incident(**{"id": "inc-1", "revision": 1, "symptoms": (), **changes})
        with self.store.batch(BatchId("query", next(self.batches))) as ledger:
            ledger.put_incidents([made])
        return made

    def at(self, seconds: float) -> int:
        """Move the clock to `seconds` after the start and let the notifier step; return how many were told."""
        self.now = START + timedelta(seconds=seconds)
        return self.notifier.step()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def entry(self, receiver: str = "ops", id: str = "inc-1") -> Delivery:
        return self.store.outbox().entries()[receiver, id]

    def outcomes(self, id: str = "inc-1") -> list[tuple[str, str]]:
        """Return (reason, outcome) of every attempt."""
        return [(each.reason.value, each.outcome.value) for each in self.store.outbox().attempts(id)]
