"""Judge what is known of a run: one sign for each thing, and, for each that is off, why it matters and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from msgspec import Struct

from engine.cli.doctor.facts import RunFacts, StoreFacts
from engine.cli.doctor.rule_times import RuleCost, RuleTimes
from engine.cli.exits import FAILURE, FOUND, NOTHING_FOUND
from engine.cli.output import count
from engine.deliver.leading import NOTIFIER
from engine.metrics.health import JOB_SILENT_S, NOTIFIER_SILENT_S, SignsOfLife, hangs
from engine.model.notifications import DeliveryState
from engine.model.phrases import lasting
from engine.model.statuses import JobStatus, ReceiverHistory, StreamStatus
from engine.spark.fence import JOB

LAG = timedelta(minutes=5)  # between the newest line of a stream that is not read to its end, and the time it was read
AHEAD = timedelta(minutes=2)  # of an event time before the clock
QUIET = timedelta(hours=1)  # without a line of any stream
SLOW_S = 60.0  # of a trigger
SLOW_RULE_S = 0.005  # of one rule on one event
FULL_BYTES = 1 << 30  # of free space on a disk
CLOCK_S = 5.0  # between the clocks of two machines
SHOWN = 3
_WAITING = (DeliveryState.QUEUED, DeliveryState.SENDING, DeliveryState.RETRY_LATER)


class VitalState(str, Enum):
    """How a thing is. `unseen`: it is not known from this machine. `down`: it does not run, or cannot be reached."""

    OK = "ok"
    UNSEEN = "unseen"
    OFF = "off"
    DOWN = "down"


class VitalSign(Struct, frozen=True):
    """One thing: its area (`job`, `source` ...), its name there, and what it is like. `matters` and `remedy` are for a thing
    that is not ok: why that matters, and what to do next."""

    area: str
    name: str
    state: VitalState
    sentence: str
    matters: str = ""
    remedy: str = ""


class Diagnosis(Struct, frozen=True):
    """The signs of a run, in the order of its parts."""

    path: str
    signs: tuple[VitalSign, ...]

    @property
    def exit_code(self) -> int:
        """3: something does not run or cannot be reached; 1: something is off; 0: all that is seen is well."""
        states = {sign.state for sign in self.signs}
        return FAILURE if VitalState.DOWN in states else FOUND if VitalState.OFF in states else NOTHING_FOUND

    def lines(self) -> Iterator[str]:
        """Yield the report: a line for each sign, with two more for one that is not ok, then a summary."""
        area = ""
        for sign in self.signs:
            heading, area = (sign.area if sign.area != area else ""), sign.area
            mark = "" if sign.state is VitalState.OK else f"{sign.state.value.upper()}: "
            name = f"{sign.name}: " if sign.name else ""
            yield f"{heading:10} {mark}{name}{sign.sentence}"
            yield from (f"{'':12} {text}" for text in (sign.matters, sign.remedy) if text)
        yield f"\n{self.summary()}"

    def summary(self) -> str:
        """Return one sentence on the result."""
        numbers = {state: sum(sign.state is state for sign in self.signs) for state in VitalState}
        parts = []
        if numbers[VitalState.DOWN]:
            parts.append(f"{numbers[VitalState.DOWN]} not running or out of reach")
        if numbers[VitalState.OFF]:
            parts.append(count(numbers[VitalState.OFF], "thing is off", "things are off"))
        if numbers[VitalState.UNSEEN]:
            parts.append("not all is seen from here" if parts else "what is seen from here is well, but not all is seen")
        return f"{self.path}: {', '.join(parts) or 'all is well'}"

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        signs = [
            {
                "area": sign.area,
                "name": sign.name,
                "state": sign.state.value,
                "message": sign.sentence,
                "matters": sign.matters,
                "remedy": sign.remedy,
            }
            for sign in self.signs
        ]
        return {"file": self.path, "exit_code": self.exit_code, "signs": signs}


def diagnose(path: str, facts: RunFacts) -> Diagnosis:
    """Return the signs of the run of the configuration at `path`."""
    return Diagnosis(path, tuple(_signs(path, facts)))


def _signs(path: str, facts: RunFacts) -> Iterator[VitalSign]:
    if facts.store is None:
        sentence = f"cannot be read: {facts.store_error}"
        matters = "nothing is known of the job and its incidents"
        yield VitalSign("store", facts.store_name, VitalState.DOWN, sentence, matters, f"tocsin config check -c {path}")
    else:
        yield from _parts(path, facts, facts.store)
        yield _store(facts, facts.store)
    yield from _places(facts)
    yield from _stalls(facts)
    if facts.store is not None:
        yield from _streams(facts, facts.store)
        yield from _own_input(path, facts.store)
        yield from _receivers(path, facts, facts.store)
        yield from _rules(path, facts.store, facts.rule_times)
        yield from _clocks(facts, facts.store)
    yield from _health(facts)


def _health(facts: RunFacts) -> Iterator[VitalSign]:
    if facts.ready is not None:
        state = VitalState.OK if facts.ready == "ok" else VitalState.OFF
        matters = "the process itself says so" if state is VitalState.OFF else ""
        remedy = "end the process and start it again, unless it waits for its store" if state is VitalState.OFF else ""
        yield VitalSign("health", "/readyz", state, "; ".join(facts.ready.splitlines()), matters, remedy)
    elif facts.ready_url and facts.is_here:
        sentence = f"nothing answers at {facts.ready_url}, though the job is a process of this machine"
        matters = "probes take the run for dead, and nobody gets its metrics"
        remedy = "restart it if `metrics` was added since its start; else SIGQUIT shows what it is doing"
        yield VitalSign("health", "/readyz", VitalState.OFF, sentence, matters, remedy)


def _parts(path: str, facts: RunFacts, store: StoreFacts) -> Iterator[VitalSign]:
    """Yield the signs of the job and the notifier, judged as /healthz does."""
    now, job, notifier = facts.now, store.job, store.notifier
    is_new = job is not None and JOB in store.holders and (now - job.started_at).total_seconds() < JOB_SILENT_S
    yield _part(
        JOB,
        store.holders.get(JOB),
        () if is_new else hangs(SignsOfLife(_sign_of_life_s(now, store.last_batch_at), None), 0.0),
        _job_sentence(now, store),
        f"start it: tocsin run -c {path} (or tocsin job)",
        "nothing is read: what is logged meanwhile is judged only when it goes on",
    )
    if is_new and job is not None and not job.batches and NOTIFIER not in store.holders:
        yield VitalSign(NOTIFIER, "", VitalState.OK, "starts after Spark, in a tocsin run")
    else:
        is_new = notifier is not None and (now - notifier.started_at).total_seconds() < NOTIFIER_SILENT_S
        yield _part(
            NOTIFIER,
            store.holders.get(NOTIFIER),
            () if is_new else hangs(SignsOfLife(None, _sign_of_life_s(now, notifier.at if notifier else None)), 0.0),
            f"last looked {_ago(now, notifier.at)}" if notifier else "has not looked yet",
            f"start it: tocsin run -c {path} (or tocsin notify)",
            "nobody is told of incidents",
        )
    if store.job is not None and store.job.trigger_s is not None and store.job.trigger_s > SLOW_S:
        slow = f"the last batch took {store.job.trigger_s:.0f} s"
        remedy = f"more spark.cores, or fewer sources; {facts.checkpoint}/spark.log and tocsin_batch_seconds tell more"
        yield VitalSign(JOB, "batches", VitalState.OFF, slow, "incidents are that late", remedy)


def _sign_of_life_s(now: datetime, at: datetime | None) -> float | None:
    """Return when a sign of life came, in seconds after `now`; None for none."""
    return None if at is None else (at - now).total_seconds()


def _part(name: str, holder: str | None, hung: Sequence[str], sentence: str, start: str, matters: str) -> VitalSign:
    """Return the sign of a part of the run that `holder` is; None: nobody is."""
    if holder is None:
        return VitalSign(name, "", VitalState.DOWN, f"is not running; {sentence}", matters, start)
    if hung:
        remedy = "end that process and start it again: it goes on where it ended (SIGQUIT shows before what it is doing)"
        return VitalSign(name, holder, VitalState.OFF, f"{'; '.join(hung)}; {sentence}", matters, remedy)
    return VitalSign(name, holder, VitalState.OK, sentence)


def _job_sentence(now: datetime, store: StoreFacts) -> str:
    parts = []
    if store.job is not None:
        parts.append(f"tocsin {store.job.version}, started {_ago(now, store.job.started_at)}")
        parts.append(f"{count(store.job.batches, 'batch', 'batches')}")
    parts.append(f"last batch {_ago(now, store.last_batch_at)}" if store.last_batch_at else "no batch yet")
    if store.job is not None and store.job.trigger_s is not None and store.job.slowest_s is not None:
        parts.append(f"the last took {store.job.trigger_s:.1f} s, the slowest of late {store.job.slowest_s:.1f} s")
    return ", ".join(parts)


def _store(facts: RunFacts, store: StoreFacts) -> VitalSign:
    unjudged = f", {store.unjudged:,} things not evaluated" if store.unjudged else ""
    sentence = f"{_size(store.size_bytes)}, schema {store.version}, {count(store.incidents, 'incident')}{unjudged}"
    return VitalSign("store", facts.store_name, VitalState.OK, sentence)


def _places(facts: RunFacts) -> Iterator[VitalSign]:
    if facts.checkpoint_bytes is not None:
        sentence = f"{_size(facts.checkpoint_bytes)} (offsets and state)"
        yield VitalSign("checkpoint", facts.checkpoint, VitalState.OK, sentence)
    for folder, free_bytes in facts.free_bytes.items():
        if free_bytes < FULL_BYTES:
            sentence = f"its disk has {_size(free_bytes)} left"
            matters = "the run ends when it is full, and goes on where it ended once there is room"
            yield VitalSign("disk", folder, VitalState.OFF, sentence, matters, "make room, or a shorter `retention`")


def _stalls(facts: RunFacts) -> Iterator[VitalSign]:
    if facts.unseen and facts.store is not None and facts.store.job is not None:
        sentence = f"which ones cannot be read is not seen from here: {facts.unseen} is not a folder of this machine"
        matters = "a source that is not read looks like a quiet one"
        remedy = "ask on the machine of the job; its log names sources that cannot be read"
        yield VitalSign("source", "", VitalState.UNSEEN, sentence, matters, remedy)
    stalled = {name for stall in facts.stalls for name in stall.sources}
    for name in facts.sources:
        if name not in stalled:
            yield VitalSign("source", name, VitalState.OK, "is read")
    for stall in facts.stalls:
        lasted = lasting(timedelta(seconds=max(0.0, facts.now_s - stall.since_s)))
        sentence = f"{'has not answered' if stall.asked else 'cannot be read'} for {lasted}: {stall.why}"
        matters = "what it logs is not judged, and nobody behind it is called silent"
        yield VitalSign("source", stall.resource, VitalState.OFF, sentence, matters, "tocsin config check says what is missing")


def _streams(facts: RunFacts, store: StoreFacts) -> Iterator[VitalSign]:
    job = store.job
    if job is None or store.holders.get(JOB) is None:
        return
    if not job.streams:
        if facts.now - job.started_at > QUIET / 12:
            yield _nothing_read(f"no line was read since the job started {_ago(facts.now, job.started_at)}")
        return
    read = [status.read_at for status in job.streams.values() if status.read_at is not None]
    if read and facts.now - max(read) > QUIET:
        yield _nothing_read(f"the last line was read {_ago(facts.now, max(read))}")
    else:
        yield VitalSign("streams", "", VitalState.OK, _streams_sentence(facts, job))
    for name, status in _worst(job.streams, _lag):
        sentence = f"is read {lasting(_lag(status))} behind its newest line, {status.unread:,} positions are unread"
        remedy = "wait while it catches up; more spark.cores if it does not"
        yield VitalSign("streams", name, VitalState.OFF, sentence, "incidents are that late", remedy)
    for name, status in _worst(job.streams, _ahead):
        sentence = f"has lines {lasting(_ahead(status))} ahead of the clock"
        remedy = "set the clock of the machine that writes it, or `timezone` of the source"
        yield VitalSign("streams", name, VitalState.OFF, sentence, "silences and orders of events are judged wrongly", remedy)


def _nothing_read(sentence: str) -> VitalSign:
    remedy = "tocsin config check shows what the sources have; compare with where the logs are written now"
    return VitalSign("streams", "", VitalState.OFF, sentence, "logs that go elsewhere look like a quiet cluster", remedy)


def _streams_sentence(facts: RunFacts, job: JobStatus) -> str:
    lines = sum(status.lines for status in job.streams.values())
    newest = max((status.newest for status in job.streams.values() if status.newest is not None), default=None)
    parts = [f"{count(job.stream_count, 'stream')}, {count(lines, 'line')} since the start"]
    if newest is not None:
        parts.append(f"the newest of {newest:%Y-%m-%d %H:%M:%S} UTC ({_ago(facts.now, newest)})")
    behind = sum(status.unread > 0 for status in job.streams.values())
    parts.append(f"{count(behind, 'stream')} not read to the end" if behind else "all read to the end")
    return ", ".join(parts)


def _lag(status: StreamStatus) -> timedelta:
    if not status.unread or status.newest is None or status.read_at is None or status.read_at - status.newest < LAG:
        return timedelta(0)
    return status.read_at - status.newest


def _ahead(status: StreamStatus) -> timedelta:
    if status.newest is None or status.read_at is None or status.newest - status.read_at < AHEAD:
        return timedelta(0)
    return status.newest - status.read_at


def _worst(streams: Mapping[str, StreamStatus], by: Any) -> list[tuple[str, StreamStatus]]:
    chosen = [(name, status) for name, status in streams.items() if by(status)]
    return sorted(chosen, key=lambda item: (-by(item[1]), item[0]))[:SHOWN]


def _own_input(path: str, store: StoreFacts) -> Iterator[VitalSign]:
    for title in store.own:
        matters = "it is about tocsin's own input: what is missing there is not judged"
        remedy = f"tocsin incidents list -c {path} --component tocsin has the fix"
        yield VitalSign("input", "", VitalState.OFF, title, matters, remedy)
    lost = f"{count(store.losses, 'range')} of input lost, {count(store.dead_letters, 'dead letter')}"
    remedy = f"; tocsin quarantine -c {path} lists them" if store.dead_letters else ""
    yield VitalSign("input", "", VitalState.OK, f"{lost} so far{remedy}")


def _receivers(path: str, facts: RunFacts, store: StoreFacts) -> Iterator[VitalSign]:
    histories = {history.receiver: history for history in store.histories}
    for name in facts.receivers:
        waiting = sum(store.outbox.get((name, state.value), 0) for state in _WAITING)
        history = histories.get(name, ReceiverHistory(name))
        queue = f"{count(waiting, 'message')} waiting" if waiting else "nothing waiting"
        if history.failing_since is not None and history.attempted_at is not None:
            lasted = lasting(facts.now - history.failing_since)
            sentence = f"has taken nothing for {lasted} ({history.outcome.replace('_', ' ')}: {history.why}), {queue}"
            remedy = f"tocsin receivers test {name} -c {path} tries it"
            yield VitalSign("receiver", name, VitalState.OFF, sentence, "nobody is told by it", remedy)
            continue
        last = f"last told {_ago(facts.now, history.delivered_at)}" if history.delivered_at else "was never sent anything"
        yield VitalSign("receiver", name, VitalState.OK, f"{last}, {queue}")


def _rules(path: str, store: StoreFacts, times: RuleTimes | None) -> Iterator[VitalSign]:
    most = sorted(store.rules, key=lambda stats: (-stats.incidents, stats.rule))[:SHOWN]
    often = ", ".join(f"{stats.rule} ({stats.incidents:,})" for stats in most)
    sentence = f"most incidents within a day: {often}" if often else "no incident within a day"
    if store.job is not None and store.job.matches:
        matches = list(store.job.matches.items())[:SHOWN]
        fired = ", ".join(f"{rule} ({number:,})" for rule, number in matches)
        sentence += f"; most matches since the start of the job: {fired}"
    if store.rule_errors:
        by_number = sorted(store.rule_errors.items(), key=lambda item: -item[1])
        errors = ", ".join(f"{rule} ({number:,})" for rule, number in by_number)
        remedy = f"tocsin quarantine -c {path} shows the errors; tocsin rules test ID tries a rule"
        matters = "these rules have not judged those events"
        yield VitalSign("rules", "", VitalState.OFF, f"failed on some events: {errors}; {sentence}", matters, remedy)
    else:
        yield VitalSign("rules", "", VitalState.OK, sentence)
    if times is not None:
        yield _slowest(times)


def _slowest(times: RuleTimes) -> VitalSign:
    slow = [cost for cost in times.costs if cost.seconds / cost.events > SLOW_RULE_S]
    shown = ", ".join(_cost(cost) for cost in (slow or times.costs)[:SHOWN]) or "none was tried"
    in_all = f"{_microseconds(times.seconds, times.events)} an event for all, on the latest {count(times.events, 'event')}"
    if not slow:
        return VitalSign("rules", "slowest", VitalState.OK, f"{shown}; {in_all}")
    remedy = "give the rule texts that ordinary lines lack: it is tried only where one of them stands (tocsin rules lint)"
    return VitalSign("rules", "slowest", VitalState.OFF, f"{shown}; {in_all}", "each such event holds up its batch", remedy)


def _cost(cost: RuleCost) -> str:
    return f"{cost.rule} ({_microseconds(cost.seconds, cost.events)} on each of {cost.events:,})"


def _microseconds(seconds: float, events: int) -> str:
    return f"{seconds / events * 1e6:,.0f} µs"


def _clocks(facts: RunFacts, store: StoreFacts) -> Iterator[VitalSign]:
    gap_s = store.time_s - facts.now_s
    stamps = [at for at in (store.last_batch_at, store.job and store.job.at, store.notifier and store.notifier.at) if at]
    ahead_s = max(((at - facts.now).total_seconds() for at in stamps), default=0.0)
    if abs(gap_s) <= CLOCK_S and ahead_s <= CLOCK_S:
        yield VitalSign("clocks", "", VitalState.OK, "store, job and this machine agree")
        return
    sentences = []
    if abs(gap_s) > CLOCK_S:
        sentences.append(f"the clock of the store is {_apart(gap_s)} this one")
    if ahead_s > CLOCK_S:
        sentences.append(f"what was stored last is {_apart(ahead_s)} this clock")
    matters = "waits, ages and silences are counted by different clocks"
    yield VitalSign("clocks", "", VitalState.OFF, "; ".join(sentences), matters, "let NTP set them (timedatectl)")


def _apart(seconds: float) -> str:
    return f"{lasting(timedelta(seconds=abs(seconds)))} {'ahead of' if seconds > 0 else 'behind'}"


def _ago(now: datetime, at: datetime) -> str:
    return f"{lasting(max(now - at, timedelta(0)))} ago"


def _size(number: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number = number / 1024  # type: ignore[assignment]
    return f"{number:,.1f} GiB"
