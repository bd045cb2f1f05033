"""Follow a proof from the line to the receiver, stage by stage, and say where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from msgspec import Struct, field

from engine.cli.doctor.diagnosis import VitalSign, VitalState
from engine.cli.proving.inlets import Inlet
from engine.errors import RuntimeMissing, SourceError, StoreError
from engine.model.acts import Act, ActKind
from engine.model.incidents import Incident
from engine.model.notifications import Attempt, DeliveryState
from engine.model.proofs import Proof
from engine.model.statuses import JobStatus
from engine.store import Store

LOOK_S = 0.2
LASTS = timedelta(minutes=10)  # how long the receiver of a proof is told of it
BY = "tocsin prove"
VIA = "command"

T = TypeVar("T")
_AREAS = {  # the parts that a stage needs, by the areas of the doctor
    "put": frozenset(("source",)),
    "judged": frozenset(("job", "store", "checkpoint", "disk", "source", "streams", "input", "rules")),
    "told": frozenset(("notifier", "store", "receiver")),
    "resolved": frozenset(("notifier", "store", "receiver")),
}


class ProofStage(Struct, frozen=True):
    """A stage that a proof has passed, and how many seconds it took."""

    name: str
    seconds: float
    sentence: str


class StoppedAt(Struct, frozen=True):
    """The stage that a proof did not pass, what is known of it, and what to do; `signs` are what is off of its parts."""

    name: str
    sentence: str
    remedy: str
    signs: tuple[VitalSign, ...] = ()


class ProofOutcome(Struct, frozen=True):
    """The stages that were passed, in order, and where it stopped; None when the line came through."""

    stages: tuple[ProofStage, ...]
    stopped: StoppedAt | None = None

    def lines(self, path: str) -> Iterator[str]:
        """Yield the report."""
        for stage in self.stages:
            yield f"{stage.name:10} {stage.seconds:5.1f} s  {stage.sentence}"
        if self.stopped is None:
            yield f"\n{path}: the line came through in {sum(stage.seconds for stage in self.stages):.1f} s"
            return
        yield f"{self.stopped.name:10} STOPPED  {self.stopped.sentence}"
        for sign in self.stopped.signs:
            yield f"{'':12} {sign.area} {sign.name}: {sign.sentence}".replace(" :", ":")
        yield f"{'':12} {self.stopped.remedy}"


class ProofClocks(Struct, frozen=True):
    """Monotonic seconds, and a pause between two looks at the store."""

    elapsed_s: Callable[[], float]
    pause: Callable[[float], object]
    now: Callable[[], datetime] = field(default_factory=lambda: lambda: datetime.now(UTC))


class ProofCourse:
    """One proof on its way. `run` may be called once.

    Args:
        within_s: how long each stage may take; a line that the job has read, or whose job has just started, may take twice as
            long to be judged.
        signs: returns the signs of the run, for the parts at which the proof stopped.
    """

    def __init__(
        self, store: Store, proof: Proof, clocks: ProofClocks, within_s: float, signs: Callable[[], tuple[VitalSign, ...]]
    ) -> None:
        self._store, self._proof, self._clocks = store, proof, clocks
        self._within_s, self._signs = within_s, signs
        self._stages: list[ProofStage] = []
        self._since_s = clocks.elapsed_s()

    def run(self, inlet: Inlet) -> ProofOutcome:
        """Put the line into `inlet` and follow it. Raises StoreError when the store cannot be used."""
        now = self._clocks.now()
        self._store.proofs().begin(self._proof, now)
        try:
            place = inlet.put(self._proof, self._proof.line(now))
        except (SourceError, RuntimeMissing) as error:
            return self._stopped("put", str(error), "tocsin config check says what the source lacks")
        self._passed("put", f"a line is in {place} ({inlet.name})")
        return self._follow(place)

    def _follow(self, place: str) -> ProofOutcome:
        incident = self._wait(self._incident)
        if incident is None and self._is_on_its_way(place):
            incident = self._wait(self._incident)
        if incident is None:
            return self._stopped(
                "judged", self._unjudged(place), "tocsin doctor looks at every part; spark.log has what Spark says"
            )
        self._passed("judged", f"{incident.id}: {incident.title}")
        if self._proof.receiver:
            told = self._wait(lambda: self._delivery(incident, 1))
            if told is None:
                remedy = f"tocsin receivers test {self._proof.receiver} tries the receiver alone"
                return self._stopped("told", self._undelivered(incident), remedy)
            self._passed("told", f"{self._proof.receiver} was told")
        self._resolve(incident)
        if self._proof.receiver and self._wait(lambda: self._delivery(incident, 2)) is None:
            return self._stopped("resolved", self._undelivered(incident), "tocsin doctor looks at the notifier")
        self._passed(
            "resolved", "the incident is resolved" if self._proof.receiver else "no receiver was asked for (--receiver)"
        )
        return ProofOutcome(tuple(self._stages))

    def _resolve(self, incident: Incident) -> None:
        key = f"proof-{self._proof.nonce}"
        act = Act(key, incident.id, ActKind.RESOLVE, BY, VIA, self._clocks.now(), text="the line came through")
        self._store.acts().record(act)

    def _delivery(self, incident: Incident, number: int) -> Attempt | None:
        """Return the attempt that was delivered to the receiver as the one with this number, counted from 1."""
        attempts = [attempt for attempt in self._attempts(incident) if attempt.outcome is DeliveryState.DELIVERED]
        return attempts[number - 1] if len(attempts) >= number else None

    def _attempts(self, incident: Incident) -> list[Attempt]:
        return [attempt for attempt in self._store.outbox().attempts(incident.id) if attempt.receiver == self._proof.receiver]

    def _incident(self) -> Incident | None:
        return self._store.proofs().incident(self._proof.nonce)

    def _is_on_its_way(self, place: str) -> bool:
        """Return whether an incident may come with the next batch: the job has read the line, or stored no batch yet."""
        job = self._store.statuses().job()
        return job is not None and (not job.batches or _has_lines(job, place))

    def _unjudged(self, place: str) -> str:
        """Return what is known of a line of which no incident came."""
        waited = f"no incident within {self._clocks.elapsed_s() - self._since_s:.0f} s"
        job = self._store.statuses().job()
        if job is not None and not job.batches:
            return f"{waited}: the job has stored no batch since it started, and the first one takes longest; try again"
        if job is not None and _has_lines(job, place):
            return f"{waited}: the job has read {place}, so its rules lack tocsin-proof or a stage failed on the line"
        return f"{waited}: the job has not stored a line of {place}"

    def _undelivered(self, incident: Incident) -> str:
        """Return what is known of a message that was not delivered."""
        waited = f"not within {self._within_s:.0f} s"
        if attempts := self._attempts(incident):
            last = attempts[-1]
            if last.outcome is not DeliveryState.DELIVERED:
                return f"{waited}: {last.outcome.value.replace('_', ' ')}, {last.why}"
        entry = self._store.outbox().entries().get((self._proof.receiver, incident.id))
        if entry is None:
            return f"{waited}: the notifier has not planned a message to {self._proof.receiver}"
        return f"{waited}: the message is {entry.state.value.replace('_', ' ')}{f' ({entry.why})' if entry.why else ''}"

    def _wait(self, look: Callable[[], T | None]) -> T | None:
        """Look until there is something, for at most `within_s`; return it, or None. While the store is away, look again."""
        until_s = self._clocks.elapsed_s() + self._within_s
        while True:
            try:
                if (result := look()) is not None:
                    return result
            except StoreError:
                if self._clocks.elapsed_s() >= until_s:
                    raise
            if self._clocks.elapsed_s() >= until_s:
                return None
            self._clocks.pause(LOOK_S)

    def _passed(self, name: str, sentence: str) -> None:
        now_s = self._clocks.elapsed_s()
        self._stages.append(ProofStage(name, now_s - self._since_s, sentence))
        self._since_s = now_s

    def _stopped(self, name: str, sentence: str, remedy: str) -> ProofOutcome:
        signs = tuple(sign for sign in self._signs() if sign.area in _AREAS[name] and sign.state is not VitalState.OK)
        return ProofOutcome(tuple(self._stages), StoppedAt(name, sentence, remedy, signs))


def _has_lines(job: JobStatus, stream: str) -> bool:
    status = job.streams.get(stream)
    return status is not None and status.lines > 0


def missing_part(signs: tuple[VitalSign, ...], receiver: str) -> StoppedAt | None:
    """Return the part that does not run, so that no line need be put in; None when all that a proof needs do."""
    needed = {"store": "put", "job": "judged", **({"notifier": "told"} if receiver else {})}
    for sign in signs:
        if sign.state is VitalState.DOWN and sign.area in needed:
            return StoppedAt(needed[sign.area], f"{sign.area} {sign.sentence}", sign.remedy)
    return None
