"""A source that asks: a server has no log of its state, so it is asked in rounds, and its answers are the lines.

A thread of the process that plans batches asks, one round at a time, and appends the lines to a spool; batches read only the
spool. So a server that hangs delays no batch, and a batch that is repeated reads the same lines. Every line begins with the
time at which its round began, like a line of `docker logs -t`: the server's state is at least as new as that.

Imports the model, errors, ports, codec and spool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import MsgspecError, Struct

from engine.codec import dumps, loads
from engine.errors import DataLoss, NoAnswer, SourceAway, SourceError, TocsinError
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset
from engine.spool import Spool

WHOLE_EVERY = timedelta(hours=1)
PATIENT_ROUNDS = 4  # failed rounds before the pauses between them grow
LONGEST_PAUSE_S = 120.0
_INVENTORY = "inventory.json"

I = TypeVar("I", bound=Struct)  # noqa: E741  (an inventory)


class Asker(Protocol[I]):
    """A server that can be asked."""

    @property
    def resource(self) -> str:
        """Its address, as sentences name it."""

    @property
    def inventory(self) -> type[I]:
        """The type of what one round learns."""

    def ask(self, before: I | None, whole: bool) -> tuple[I, Sequence[str]]:
        """Ask once. Return what there is, and as lines what differs from `before` (None: nothing is known), or all of it if
        `whole`. At least one line: it shows that the server answers.

        Raises SourceError when the server does not answer, or not completely.
        """

    def close(self) -> None:
        """Close the connections; the next `ask` opens them again."""


def pause_s(every_s: float, failures: int) -> float:
    """Return how long to wait after a round. The pause doubles with every failure in a row beyond PATIENT_ROUNDS, up to
    LONGEST_PAUSE_S."""
    doublings = min(16, max(0, failures - PATIENT_ROUNDS))
    return min(every_s * float(2**doublings), max(every_s, LONGEST_PAUSE_S))


def stamped(lines: Sequence[str], at: datetime) -> bytes:
    """Return `lines` with the time `at` before each physical line."""
    stamp = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"
    return "".join(f"{stamp} {line}\n" for text in lines for line in text.split("\n")).encode()


class Rounds(Generic[I]):
    """Asks `asker` and writes the lines to `folder`, and to `record` if it is given.

    Attributes:
        failure: why the last round failed; None when it did not, or when there was none.
        unrecorded: why the lines of the last round are not in `record`; None when they are.
    """

    def __init__(self, asker: Asker[I], folder: Path, record: str, wall: Callable[[], datetime]) -> None:
        self._asker, self._folder, self._record, self._wall = asker, folder, record, wall
        self._spool = Spool(folder)
        self._inventory: I | None = None
        self._whole_at: datetime | None = None  # when all was last written
        self.failures = 0
        self.failure: SourceError | None = None
        self.unrecorded: SourceError | None = None

    def ask(self, read_to: int) -> None:
        """Do one round. One without an answer writes nothing, and the next compares with the round before it.

        Args:
            read_to: the position up to which lines were read.
        """
        at, before = self._wall(), self._inventory or self._stored()
        whole = before is None or self._whole_at is None or not timedelta() <= at - self._whole_at < WHOLE_EVERY
        try:
            inventory, lines = self._asker.ask(before, whole)
            data = stamped(lines, at)
            self._spool.append(data, read_to)
            is_new = inventory != self._inventory
            self._inventory, self._whole_at = inventory, at if whole else self._whole_at
            if is_new:
                self._store(inventory)
        except SourceError as error:
            self._failed(error)
        except TocsinError as error:  # a secret that cannot be read at present
            self._failed(SourceError(str(error)))
        except OSError as error:
            self._failed(SourceError(f"its answer cannot be stored in {self._folder} ({error.strerror or error})"))
        except Exception as error:  # a defect would end the thread, and nobody would be told
            self._failed(SourceError(f"its answer cannot be used ({type(error).__name__}: {error}); report this"))
        else:
            self.failures, self.failure, self.unrecorded = 0, None, self._recorded(data)
            self._spool.prune(read_to)

    def _failed(self, error: SourceError) -> None:
        self.failures, self.failure = self.failures + 1, error

    def _stored(self) -> I | None:
        """Return the inventory of the last round of an earlier run; None without one that can be read."""
        try:
            return loads((self._folder / _INVENTORY).read_bytes(), self._asker.inventory)
        except (OSError, MsgspecError):
            return None

    def _store(self, inventory: I) -> None:
        path = self._folder / _INVENTORY
        draft = path.with_suffix(".new")
        draft.write_text(dumps(inventory), encoding="utf-8")
        draft.replace(path)

    def _recorded(self, data: bytes) -> SourceError | None:
        if not self._record:
            return None
        try:
            with Path(self._record).open("ab") as record:  # opened each time, so that it may be rotated
                record.write(data)
        except OSError as error:
            return SourceError(f"it cannot be written ({error.strerror or error}), so the answers are not recorded")
        return None


@dataclass
class AskingSource(Generic[I]):
    """The lines that `asker` gives, as one stream named `source_id`. A first run reads all that it is told from its start on.

    Args:
        folder: where the lines are until they have been read.
        every_s: the time between two rounds.
        record: a file that all lines are appended to as well; empty: none.
        final: the input ends with one round.
    """

    asker: Asker[I]
    source_id: str
    folder: str
    every_s: float
    labels: Labels
    record: str = ""
    final: bool = False
    wall: Callable[[], datetime] = field(default=partial(datetime.now, UTC), repr=False)
    _rounds: Rounds[I] | None = field(default=None, repr=False, compare=False)
    _stop: threading.Event | None = field(default=None, repr=False, compare=False)
    _read_to: int = field(default=0, repr=False, compare=False)

    def initial(self) -> Offset:
        """Return the beginning of what was asked: no line is older than the checkpoint that it is in."""
        return {"at": self._spool.begin()}

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the position up to which lines were asked, at most `max_lines` after `start`. The first call begins to ask; of
        bounded input it asks the only round, and raises SourceAway when that fails."""
        self._read_to = start["at"]
        if self._rounds is None:
            self._begin()
        return {"at": self._spool.reach(start["at"], max_lines)}

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return one slice: the lines are in order."""
        return [{"start": start["at"], "end": end["at"]}] if start["at"] < end["at"] else []

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises DataLoss when some were removed, after it has yielded the others."""
        reached, missing = slice_["start"], 0
        for at, data in self._spool.pieces(slice_["start"], slice_["end"]):
            missing += at - reached
            reached = at + len(data)
            yield Chunk(self.source_id, at, data, labels=self.labels)
        if missing + slice_["end"] - reached:
            why = f"answers were removed from {self.folder} before they were read"
            raise DataLoss(self.source_id, slice_["start"], slice_["end"], why)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return how far the lines are read."""
        written = max(end["at"], self._spool.end())
        return [Progress(self.source_id, end["at"], written, caught_up=end["at"] == written)]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return why the last round failed, by the address of the server, and why the record could not be written."""
        rounds = self._rounds
        if rounds is None:
            return {}
        silent = {} if rounds.failure is None else {self.asker.resource: NoAnswer(self.asker.resource, str(rounds.failure))}
        return silent if rounds.unrecorded is None else {**silent, self.record: rounds.unrecorded}

    def close(self) -> None:
        """End asking, and close the connections. The next call of `latest` begins again."""
        if self._stop is not None:
            self._stop.set()
        self._rounds = self._stop = None
        self.asker.close()

    @property
    def _spool(self) -> Spool:
        return Spool(Path(self.folder))

    def _begin(self) -> None:
        self._rounds = rounds = Rounds(self.asker, Path(self.folder), self.record, self.wall)
        if self.final:
            rounds.ask(self._read_to)
            if rounds.failure is not None:
                raise SourceAway(self.asker.resource, str(rounds.failure)) from rounds.failure
            return
        self._stop = stop = threading.Event()
        threading.Thread(target=self._ask_on, args=(rounds, stop), name=self.source_id, daemon=True).start()

    def _ask_on(self, rounds: Rounds[I], stop: threading.Event) -> None:
        while not stop.is_set():
            rounds.ask(self._read_to)
            stop.wait(pause_s(self.every_s, rounds.failures))
