"""What is off with a run, judged from what is known of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.cli.doctor.diagnosis import Diagnosis, VitalState, diagnose
from engine.cli.doctor.facts import RunFacts, StoreFacts
from engine.cli.doctor.rule_times import RuleCost, RuleTimes
from engine.model.acts import RuleStats
from engine.model.statuses import JobStatus, NotifierStatus, ReceiverHistory, StreamStatus
from engine.spark.stalls import Stall

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOON - timedelta(**span)


STREAM = StreamStatus(100, 5_000, ago(seconds=3), ago(seconds=4))
STORE = StoreFacts(
    version=9,
    size_bytes=12 << 20,
    incidents=7,
    holders={"job": "process 11", "notifier": "process 11"},
    time_s=NOON.timestamp(),
    last_batch_at=ago(seconds=2),
    job=JobStatus("process 11 on a", "0.2.0", ago(days=3), ago(seconds=5), 90, 0.4, 1.2, {"a.log": STREAM}, 1),
    notifier=NotifierStatus("process 11 on a", "0.2.0", ago(days=3), ago(seconds=4)),
    outbox={("ops", "delivered"): 7},
    histories=[ReceiverHistory("ops", ago(hours=1), ago(hours=1), "delivered")],
    own=[],
    losses=0,
    dead_letters=0,
    rule_errors={},
    rules=[RuleStats("hello", 3, 3, 0, 0, 0)],
    unjudged=0,
)
WELL = RunFacts(
    now_s=NOON.timestamp(),
    receivers=["ops"],
    store_name="sqlite:///t.db",
    store=STORE,
    checkpoint="/t.checkpoint",
    checkpoint_bytes=4096,
    free_bytes={"/": 99 << 30},
    sources=["files default logs"],
    ready="ok",
)


def of_store(**changes: Any) -> RunFacts:
    return replace(WELL, store=replace(STORE, **changes))


def of_stream(**changes: Any) -> RunFacts:
    assert STORE.job is not None
    return of_store(job=replace(STORE.job, streams={"a.log": replace(STREAM, **changes)}))


def off(diagnosis: Diagnosis) -> list[str]:
    return [f"{sign.area}: {sign.sentence}" for sign in diagnosis.signs if sign.state is not VitalState.OK]


def test_a_run_that_is_well_says_so_of_each_part() -> None:
    diagnosis = diagnose("tocsin.yml", WELL)
    text = "\n".join(diagnosis.lines())
    assert (off(diagnosis), diagnosis.exit_code) == ([], 0)
    assert "job        process 11: tocsin 0.2.0, started 3 d ago, 90 batches, last batch 2 s ago, the last took 0.4 s" in text
    assert "streams    1 stream, 100 lines since the start, the newest of 2026-11-27 11:59:56 UTC (4 s ago)" in text
    assert "rules      most incidents within a day: hello (3)" in text
    assert text.endswith("tocsin.yml: all is well")


def test_the_rules_that_matched_most_are_named() -> None:
    assert STORE.job is not None
    facts = of_store(job=replace(STORE.job, matches={"hello": 1234, "world": 5, "a": 4, "b": 3}))
    text = "\n".join(diagnose("tocsin.yml", facts).lines())
    assert "hello (3); most matches since the start of the job: hello (1,234), world (5), a (4)" in text
    assert "b (3)" not in text


@pytest.mark.parametrize(
    ("facts", "sentence", "code"),
    [
        (replace(WELL, store=None, store_error="unable to open"), "store: cannot be read: unable to open", 3),
        (of_store(holders={"notifier": "process 12"}), "job: is not running; tocsin 0.2.0, started 3 d ago", 3),
        (of_store(holders={"job": "process 11"}), "notifier: is not running; last looked 4 s ago", 3),
        (of_store(last_batch_at=ago(minutes=6)), "job: the job has stored no batch for 6 min", 1),
        (
            of_store(notifier=NotifierStatus("x", "0.2.0", ago(days=1), ago(minutes=3))),
            "notifier: the notifier has not looked at the store for 3 min",
            1,
        ),
        (replace(WELL, free_bytes={"/data": 5 << 20}), "disk: its disk has 5.0 MiB left", 1),
        (
            replace(WELL, stalls=[Stall("default", "/var/log/a", "no permission", int(NOON.timestamp()) - 120, ("a",))]),
            "source: cannot be read for 2 min: no permission",
            1,
        ),
        (of_stream(read_at=ago(hours=2), newest=ago(hours=2)), "streams: the last line was read 2 h ago", 1),
        (
            of_stream(unread=9_000, newest=ago(minutes=30)),
            "streams: is read 29 min 57 s behind its newest line, 9,000 positions are unread",
            1,
        ),
        (of_stream(newest=NOON + timedelta(hours=9)), "streams: has lines 9 h ahead of the clock", 1),
        (of_store(own=["Lines of a.log are lost"]), "input: Lines of a.log are lost", 1),
        (
            of_store(
                histories=[ReceiverHistory("ops", None, ago(minutes=1), "retry_later", "timeout", ago(hours=1))],
                outbox={("ops", "retry_later"): 4},
            ),
            "receiver: has taken nothing for 1 h (retry later: timeout), 4 messages waiting",
            1,
        ),
        (of_store(rule_errors={"hello": 2}), "rules: failed on some events: hello (2)", 1),
        (of_store(time_s=NOON.timestamp() + 90), "clocks: the clock of the store is 1 min 30 s ahead of this one", 1),
        (of_store(last_batch_at=NOON + timedelta(minutes=9)), "clocks: what was stored last is 9 min ahead of this clock", 1),
        (replace(WELL, ready="the job has stored no batch for 6 min"), "health: the job has stored no batch for 6 min", 1),
    ],
)
def test_what_is_off_is_named_with_why_it_matters_and_what_to_do(facts: RunFacts, sentence: str, code: int) -> None:
    diagnosis = diagnose("tocsin.yml", facts)
    assert any(line.startswith(sentence) for line in off(diagnosis)), off(diagnosis)
    assert diagnosis.exit_code == code
    assert len(off(diagnosis)) == 1
    assert all(sign.matters and sign.remedy for sign in diagnosis.signs if sign.state is not VitalState.OK)


def test_a_job_that_has_just_started_hangs_not() -> None:
    assert STORE.job is not None
    started = replace(STORE.job, started_at=ago(seconds=20), streams={}, stream_count=0)
    assert off(diagnose("tocsin.yml", of_store(job=started, last_batch_at=ago(days=2)))) == []


def test_a_notifier_that_waits_for_spark_is_not_missed() -> None:
    assert STORE.job is not None
    started = replace(STORE.job, started_at=ago(seconds=20), batches=0, streams={}, stream_count=0)
    waiting = of_store(job=started, last_batch_at=None, notifier=None, holders={"job": "process 11"})
    assert off(diagnose("tocsin.yml", waiting)) == []


def test_lines_of_a_quiet_stream_that_is_read_to_its_end_are_no_lag() -> None:
    assert off(diagnose("tocsin.yml", of_stream(newest=ago(days=2)))) == []


def test_the_same_for_programs() -> None:
    value = diagnose("tocsin.yml", of_store(holders={})).as_json()
    assert value["exit_code"] == 3
    assert [sign["state"] for sign in value["signs"][:2]] == ["down", "down"]
    assert value["signs"][0]["remedy"] == "start it: tocsin run -c tocsin.yml (or tocsin job)"


def test_pages_of_health_that_do_not_answer_are_off_only_where_the_job_runs_here() -> None:
    silent = replace(WELL, ready=None, ready_url="http://127.0.0.1:9090/readyz", is_here=True)
    assert off(diagnose("t", silent)) == [
        "health: nothing answers at http://127.0.0.1:9090/readyz, though the job is a process of this machine"
    ]
    assert diagnose("t", silent).exit_code == 1
    assert off(diagnose("t", replace(silent, is_here=False))) == []


def test_sources_that_are_not_seen_from_here_are_not_called_well() -> None:
    diagnosis = diagnose("t", replace(WELL, sources=[], unseen="hdfs://nn/tocsin"))
    assert off(diagnosis) == [
        "source: which ones cannot be read is not seen from here: hdfs://nn/tocsin is not a folder of this machine"
    ]
    assert (diagnosis.exit_code, diagnosis.summary()) == (0, "t: what is seen from here is well, but not all is seen")


def test_the_costliest_rules_are_told_and_one_that_takes_long_is_off() -> None:
    times = RuleTimes(1000, 0.02, [RuleCost("hello", 0.01, 100), RuleCost("bye", 0.001, 1000)])
    told = "hello (100 µs on each of 100), bye (1 µs on each of 1,000); 20 µs an event for all, on the latest 1,000 events"
    [sign] = [sign for sign in diagnose("t.yml", replace(WELL, rule_times=times)).signs if sign.name == "slowest"]
    assert (sign.state, sign.sentence) == (VitalState.OK, told)
    slow = replace(times, costs=[*times.costs, RuleCost("slow", 0.006, 1)])
    assert off(diagnose("t.yml", replace(WELL, rule_times=slow))) == [
        "rules: slow (6,000 µs on each of 1); 20 µs an event for all, on the latest 1,000 events"
    ]
