"""Incidents for the tests of what people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom

AT = datetime(2023, 2, 3, 2, 5, 2, 285000, tzinfo=UTC)

TOO_LARGE = Incident(
    id="inc-0123456789",
    key=("default", "connect-record-too-large-client", (("cluster", "default"), ("connector", "cdc-source"), ("task", "0"))),
    revision=2,
    rule="connect-record-too-large-client",
    title="A Connect task produced a record larger than max.request.size",
    severity="critical",
    status="open",
    component="connect",
    labels={"cluster": "default", "connector": "cdc-source", "task": "0", "topic": "A.B.C", "worker": "kafka-connect-2"},
    first_seen=AT,
    last_seen=AT + timedelta(seconds=5),
    resolved_at=None,
    count=1,
    cause="cdc-source tried to send a 1.07 MiB record; its producer allows 1 MiB.",
    impact="The task is dead until someone restarts it; nothing behind it flows.",
    fix=(
        RenderedStep(
            do="Let the producer send it",
            where="worker",
            set={"producer.max.request.size": "2097152"},
            also={"CONNECT_PRODUCER_MAX_REQUEST_SIZE": "2097152"},
        ),
        RenderedStep(
            do="Let the topic take it, the next refusal once the first is lifted",
            where="topic",
            run="kafka-configs.sh --bootstrap-server ${bootstrap:?} --entity-type topics --entity-name A.B.C --alter "
            "--add-config max.message.bytes=2097152",
            changes_state=True,
        ),
        RenderedStep(do="Keep the plan beside it", file={"plan.json": '{"version":1,\n "partitions":[]}'}),
    ),
    verify="curl -s ${connect_url:?}/connectors/cdc-source/status",
    evidence=(
        Evidence(
            event_id="e1",
            source_id="connect.log#kafka-connect-2",
            number=12,
            at=AT,
            text="[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] WorkerSourceTask{id=cdc-source-0} failed to send record "
            "to A.B.C:  (org.apache.kafka.connect.runtime.AbstractWorkerSourceTask:406)\n"
            "org.apache.kafka.common.errors.RecordTooLargeException: The message is 1125872 bytes when serialized\n"
            "\tat org.apache.kafka.connect.runtime.WorkerSourceTask.execute(WorkerSourceTask.java:1)\n"
            "\t... 7 more",
        ),
    ),
    symptoms=(
        Symptom("connect-task-killed", "A Connect task was killed", 1, {"cluster": "default", "connector": "cdc-source"}),
    ),
    captures={"size": 1125872, "limit": 1048576},
    also_possible=("broker-silent",),
    next_checks=("Is the record meant to be this large?",),
    references=("https://kafka.apache.org/documentation/#producerconfigs_max.request.size",),
)


def incident(**changes: Any) -> Incident:
    """Return TOO_LARGE with some fields changed."""
    return replace(TOO_LARGE, **changes)
