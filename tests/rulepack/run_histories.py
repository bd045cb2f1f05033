"""Random histories of logs and of the whole job: what `run` has found in the end is what `scan` finds in what was read.

See FileHistories for what happens to the files, and for the proof that each line is read once or its loss is recorded. Here the
lines are those of three brokers, the job is the one of `tocsin run` without Java, and it is killed at any moment of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from msgspec.structs import replace

from connectors.files.rotation import is_rotated
from engine.clock import SteadyClock
from engine.errors import DataLoss
from engine.model.incidents import Incident
from engine.model.records import Progress, RawLine
from engine.model.rules import OWN
from engine.pipeline import replay
from engine.ports import Chunk, Offset
from tests.rulepack.played_job import MOMENTS, SOURCE, Killed, Place, PlayedJob
from tests.rulepack.playing import plan
from tests.spark.finals import finals
from tests.unit.connectors.files.file_histories import LOGS, FileHistories
from tests.unit.connectors.files.triggers import LONG_S

BROKERS = {log: number for number, log in enumerate(LOGS, 1)}
BEGIN = datetime(2024, 6, 30, tzinfo=UTC)
HEARTBEAT_S = 600
STEPS_S = (0.5, 2, 7, 20, 45)  # between two events

_HEARTBEAT = (
    "INFO [GroupMetadataManager brokerId={id}] Removed 0 expired offsets in {n} milliseconds. "
    "(kafka.coordinator.group.GroupMetadataManager)"
)
EVENTS = (  # {id}: the broker, {peer}: another one, {n}: never the same; as Kafka and Kafka Connect print them
    _HEARTBEAT,
    "INFO [ProducerStateManager partition=payments-{k}] Writing producer snapshot at offset {n} "
    "(kafka.log.ProducerStateManager)",
    "INFO [Partition orders-{k} broker={id}] Shrinking ISR from 1,2,3 to {id}. Leader: (highWatermark: {n}, endOffset: {n}). "
    "Out of sync replicas: (brokerId: {peer}, endOffset: {n}). (kafka.cluster.Partition)",
    "INFO [Partition orders-{k} broker={id}] Expanding ISR from {id} to {id},{peer} for offset {n} (kafka.cluster.Partition)",
    "WARN [ReplicaFetcher replicaId={id}, leaderId={peer}, fetcherId=0] Connection to node {peer} "
    "(kafka-{peer}/10.0.0.{peer}:9092) could not be established. Broker may not be available. "
    "(org.apache.kafka.clients.NetworkClient {n})",
    "ERROR [ReplicaManager broker={id}] Error processing append operation on partition invoices-{k} "
    "(kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.RecordTooLargeException: The record batch size in the append to invoices-{k} is {n} bytes "
    "which exceeds the maximum configured value of 1048588.",
    "ERROR [ReplicaManager broker={id}] Error processing append operation on partition orders-{k} "
    "(kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set({id}) is insufficient to "
    "satisfy the min.isr requirement of 2 for partition orders-{k} ({n})\n"
    "\tat kafka.cluster.Partition.appendRecordsToLeader(Partition.scala:{n})",
    "ERROR [members-{k}|task-0] Error encountered in task members-{k}-0. Executing stage 'VALUE_CONVERTER' with class "
    "'org.apache.kafka.connect.json.JsonConverter', where consumed record is {{topic='members.{k}', partition=2, offset={n}, "
    "timestamp=1719675572104, timestampType=CreateTime}}. (org.apache.kafka.connect.runtime.errors.LogReporter:66)\n"
    "org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data failed due to serialization "
    "error: {n}\n"
    "\tat org.apache.kafka.connect.json.JsonConverter.toConnectData(JsonConverter.java:{n})\n"
    "Caused by: org.apache.kafka.common.errors.SerializationException: com.fasterxml.jackson.core.JsonParseException: "
    "Unexpected character ('S' (code 83)): was expecting double-quote to start field name ({n})\n"
    ' at [Source: (byte[])"{{SIGN_UP, "accountId":{n}}}"; line: 1, column: 3]',
)


@dataclass
class Reading:
    """What FileHistories asks of a reader, answered by the job; its offset is that of the job."""

    job: PlayedJob

    def __post_init__(self) -> None:
        self.losses: list[DataLoss] = []

    @property
    def offset(self) -> Place:
        assert self.job.place is not None
        return self.job.place

    @offset.setter
    def offset(self, place: Place) -> None:
        """Only the job goes on."""

    def planned(self, max_lines: int | None = None) -> Place:
        return self.job.ends_at(max_lines)

    def crash(self) -> None:
        self.job.restart()

    def batch(self, end: Offset) -> list[Chunk]:
        """Return the chunks of the batch up to `end`."""
        source = self.job.reader._sources[SOURCE]
        begin, files = self.job.files(self.job.place), self.job.files(end)
        chunks: list[Chunk] = []
        for slice_ in source.partitions(begin, files) if begin is not None else ():
            chunks += self._chunks(slice_)
        return chunks

    def _chunks(self, slice_: Any) -> Iterator[Chunk]:
        try:
            yield from self.job.reader._sources[SOURCE].chunks(slice_)
        except* DataLoss as group:
            self.losses += [loss for loss in group.exceptions if isinstance(loss, DataLoss)]


class BrokerHistories(FileHistories):
    """The logs are those of three brokers. Event time goes on with what is written."""

    half_chars = 30  # more than the stamp

    def __init__(self) -> None:
        super().__init__()
        self.chance = Random(0)
        self.passed_s = 0.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.passed_s)

    def line(self, log: str) -> str:
        return self.event(log, self.chance.choice(EVENTS))

    def event(self, log: str, text: str) -> str:
        self.count += 1
        self.passed_s += self.chance.choice(STEPS_S)
        id_ = BROKERS[log]
        body = text.format(id=id_, peer=id_ % len(LOGS) + 1, n=1_100_000 + self.count, k=self.count % 3)
        stamp = f"{self.now():%Y-%m-%d %H:%M:%S,%f}"[:-3]
        printed = f"[{stamp}] {body}"
        assert not self.model.written.keys() & set(printed.split("\n")), "a line is told from all others by its text"
        self.model.written |= dict.fromkeys(printed.split("\n"), log)
        return printed

    def beat(self, log: str) -> None:
        """Let a broker print what it prints every ten minutes."""
        writer = self.writers[log]
        if not writer.is_visible:
            writer.open()
        writer.finish()
        writer.write(self.event(log, _HEARTBEAT) + "\n")

    def end(self) -> None:
        """Let everything that was open end: no log holds up any longer what is judged in a scan."""
        self.passed_s += 10 * 3600
        for log in LOGS:
            self.reopen(log)
        for _ in range(2):
            self.passed_s += 60
            for log in LOGS:
                self.beat(log)
        for writer in self.writers.values():
            writer.close()


class RunHistories(BrokerHistories):
    """One history of logs and job. The wall clock, which ticks are made of, also jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.jumped_s = 0.0
        self.first_reading: dict[str, RawLine] = {}
        (self.root / "job").mkdir()
        self.job = PlayedJob(self.root / "job", (str(self.logs),), plan(), self.clocks, self.ticking, self.chance)
        self.reader = Reading(self.job)  # type: ignore[assignment]

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.job.kill()

    # --- what is printed -----------------------------------------------------------------------------------------------

    @initialize(lines=st.integers(0, 5), look=st.sampled_from([True, True, True, False]), seed=st.integers(0, 10_000))
    def begin(self, lines: int, look: bool, seed: int) -> None:
        self.chance.seed(seed)
        for _ in range(4):
            for log in LOGS:
                self.beat(log)
            self.passed_s += HEARTBEAT_S - 60
        super().begin(lines, look)

    @rule(silent=st.sampled_from([*LOGS, ""]), rounds=st.integers(1, 5), look=st.booleans())
    def time_goes_on(self, silent: str, rounds: int, look: bool) -> None:
        """Brokers print their heartbeats, but for one that is silent."""
        for _ in range(rounds):
            self.passed_s += HEARTBEAT_S
            for log in LOGS:
                if log != silent:
                    self.beat(log)
            if look:
                self.trigger(None)

    # --- clocks, and the job -----------------------------------------------------------------------------------------------

    def ticking(self) -> SteadyClock:
        return SteadyClock(lambda: self.now() + timedelta(seconds=self.jumped_s), lambda: self.passed_s)

    @rule(seconds=st.integers(-400_000, 400_000), stays=st.booleans())
    def wall_clock_jumps(self, seconds: int, stays: bool = False) -> None:
        super().wall_clock_jumps(seconds)
        self.jumped_s += seconds
        if stays:
            self.trigger(None)
            self.passed_s += 1000
            self.trigger(None)

    @rule()
    def time_passes(self) -> None:
        super().time_passes()
        self.passed_s += 2 * LONG_S

    @rule(max_lines=st.one_of(st.none(), st.integers(1, 6)))
    def plan(self, max_lines: int | None) -> None:
        super().plan(max_lines)
        if self.planned is not None and self.job.planned is None:
            self.job.write_plan(self.planned)

    @rule()
    def read(self) -> None:
        if self.planned is None:
            return
        self.batches.append(self.attempt(self.planned))
        self.job.do()
        self.planned = None

    @rule(had_read=st.booleans(), moment=st.sampled_from(MOMENTS))
    def kill_while_reading(self, had_read: bool, moment: str = "") -> None:
        """The offset was persisted, so the same batch is done again."""
        if had_read and self.planned is not None:
            try:
                self.job.do(killed_at=moment)
            except Killed:
                pass
            else:
                raise AssertionError(f"it did not come to {moment}")
        self.reader.crash()

    def attempt(self, end: Offset) -> tuple[list[str], list[DataLoss]]:
        self.reader.losses = []
        chunks = self.reader.batch(end)
        self.check_places(chunks)
        lines = [raw for chunk in chunks for raw in chunk.lines()]
        for raw in lines:
            self.first_reading.setdefault(raw.value.decode(), raw)
        return [raw.value.decode() for raw in lines], self.reader.losses

    # --- what must hold --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Run once more, to the end of what there is."""
        self.end()
        self.job.restart(bounded=True)
        for _ in range(30):
            before = self.reader.offset
            self.trigger(None)
            if self.reader.offset == before:
                return
        raise AssertionError("there is always another batch")

    def check(self) -> None:
        super().check()
        stored, losses = self.job.store.losses(), [loss for _, batch in self.batches for loss in batch]
        assert {span(loss) for loss in stored} == {span(loss) for loss in losses}
        assert not self.job.store.quarantined()
        found, expected = told(self.job.store.incidents()), told(self.scanned())
        assert found == expected

    def scanned(self) -> list[Incident]:
        """Return the incidents of a scan over the lines that were read, each log in the order in which it was written."""
        return list({incident.id: incident for incident in replay(self.lines_read(), plan())}.values())

    def lines_read(self) -> Iterator[RawLine | Progress]:
        sizes: Counter[str] = Counter()
        for line in self.model.written:
            if (raw := self.first_reading.get(line)) is not None:
                yield replace(raw, offset=sizes[raw.source_id])
                sizes[raw.source_id] += len(raw.value) + 1
        for source, size in sizes.items():
            yield Progress(source, size, size, caught_up=True, closed=is_rotated(source.partition("~")[0]))


def span(loss: DataLoss) -> tuple[str, int, int]:
    return loss.source_id, loss.lost_from, loss.lost_to


def told(incidents: list[Incident]) -> list[Any]:
    """Return what incidents of the logs say in the end."""
    return finals(incident for incident in incidents if incident.component != OWN)
