"""Days of three brokers and a Connect worker on which nothing is wrong: real histories of minutes, repeated, and between them
what each version prints at its own pace (Kafka's GroupMetadataManager, GroupCoordinatorShard, KafkaController,
SnapshotGenerator, EventPerformanceMonitor, DistributedHerder)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from msgspec import Struct

from tests.bench.corpus import QUIET, filled
from tests.rulepack.playing import GOODLOGS, NO_LOGS, Story

DAY = timedelta(days=1)
BEGIN = datetime(2026, 3, 2)
BROKERS = (1, 2, 3)
LOADED_EVERY = timedelta(seconds=30)

_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]", re.MULTILINE)
_FORM = "%Y-%m-%d %H:%M:%S,%f"

Said = tuple[datetime, str]  # when, and the text behind the stamp, continuation lines included


class Pace(Struct, frozen=True):
    """What a broker prints every so often: {id} is the broker's, {n} counts up."""

    every: timedelta
    text: str
    brokers: Sequence[int] = BROKERS


class Version(Struct, frozen=True):
    """How the brokers of a version spend a day: restarted as in `restart`, at other times printing at these paces."""

    restart: str
    paces: Sequence[Pace]


_OFFSETS = (
    "INFO [GroupMetadataManager brokerId={id}] Removed 0 expired offsets in 0 milliseconds. "
    "(kafka.coordinator.group.GroupMetadataManager)"
)
_ELECTION = (
    "INFO [Controller id={id}] Processing automatic preferred replica leader election (kafka.controller.KafkaController)"
)
_TOMBSTONES = (
    "INFO [GroupCoordinator id={id} topic=__consumer_offsets partition=7] Generated 0 tombstone records while cleaning up "
    "group metadata in 0 milliseconds. (org.apache.kafka.coordinator.group.GroupCoordinatorShard)"
)
_SNAPSHOT = (
    "INFO [SnapshotGenerator id={id}] Creating new KRaft snapshot file snapshot {n:020d}-0000000003 because we have waited at "
    "least 60 minute(s). (org.apache.kafka.image.publisher.SnapshotGenerator)"
)
_PERFORMANCE = (
    "INFO [QuorumController id={id}] In the last 60000 ms period, 240 controller events were completed, which took an average "
    "of 1.20 ms each. The slowest event was writeNoOpRecord({n}), which took 9.87 ms. "
    "(org.apache.kafka.controller.EventPerformanceMonitor)"
)
_KEY = (
    "INFO [Worker clientId=connect-{id}, groupId=connect] Session key updated "
    "(org.apache.kafka.connect.runtime.distributed.DistributedHerder:481)"
)
_TEN, _FIVE, _HOUR, _MINUTE = (timedelta(minutes=minutes) for minutes in (10, 5, 60, 1))

WORKER = Pace(_HOUR, _KEY, ())
VERSIONS: Mapping[str, Version] = {
    "2.6": Version("rolling-restart-2.8-zookeeper", (Pace(_TEN, _OFFSETS), Pace(_FIVE, _ELECTION, (2,)))),
    "3.9 with ZooKeeper": Version("rolling-restart-3.9-zookeeper", (Pace(_TEN, _TOMBSTONES), Pace(_FIVE, _ELECTION, (1,)))),
    "4.3": Version("rolling-restart-4.3", (Pace(_HOUR, _SNAPSHOT), Pace(_MINUTE, _PERFORMANCE, (1,)))),
}


def day(version: str, loaded: bool) -> Story:
    """Return 24 hours of three brokers and a Connect worker, all restarted every eight hours; `loaded`: with traffic."""
    how, random = VERSIONS[version], Random(1)
    restarts = {path.name: _read(path) for path in sorted(_healthy(how.restart).iterdir()) if path.suffix not in NO_LOGS}
    first = min(said[0][0] for said in restarts.values())
    length = max(said[-1][0] for said in restarts.values()) - first
    logs = {name: _repeated(said, BEGIN - first) for name, said in restarts.items()}
    worker = _read(_healthy("clean-start") / "connect.log")
    logs["connect.log"] = [*_repeated(worker, BEGIN + length - worker[0][0]), *_paced(WORKER, 1, length)]
    for broker in BROKERS:
        said = logs[f"broker-{broker}.log"]
        said += [each for pace in how.paces if broker in pace.brokers for each in _paced(pace, broker, length)]
        said += _traffic(length, random) if loaded else ()
    return Story(
        {name: "".join(f"[{at:{_FORM}}"[:-3] + f"]{text}" for at, text in sorted(said)) for name, said in logs.items()}
    )


def _healthy(name: str) -> Path:
    return next(path for path in GOODLOGS if path.name == name)


def _stamped(said: Said) -> str:
    at, text = said
    return f"[{at:{_FORM}}"[:-3] + f"]{text}"


def _read(path: Path) -> list[Said]:
    """Return the events of a log; what stands before the first stamp goes with none."""
    _, *pieces = _STAMP.split(path.read_text(encoding="utf-8"))
    return [(datetime.strptime(stamp, _FORM), text) for stamp, text in zip(pieces[::2], pieces[1::2], strict=True)]


def _repeated(said: Sequence[Said], by: timedelta) -> list[Said]:
    return [(at + by + turn * DAY / 3, text) for turn in range(3) for at, text in said]


def _paced(pace: Pace, broker: int, length: timedelta) -> Iterator[Said]:
    for number, at in enumerate(_between(length, pace.every)):
        yield at + timedelta(seconds=broker), f" {pace.text.format(id=broker, n=1000 * number)}\n"


def _traffic(length: timedelta, random: Random) -> list[Said]:
    """Return what the load lets a broker print: segments, snapshots, groups that are joined, requests."""
    return [(at, f" {filled(random.choice(QUIET), random)}\n") for at in _between(length, LOADED_EVERY)]


def _between(length: timedelta, every: timedelta) -> Iterator[datetime]:
    """Yield the times of a day, so far apart, at which nobody is being restarted."""
    at = BEGIN + length
    while (at := at + every) < BEGIN + DAY:
        if (at - BEGIN) % (DAY / 3) > length:
            yield at
