"""The sentences of a blast radius, and which thing of an entity it is about."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from engine.incident.blasts import blast_of, sentences
from engine.language import words_of
from engine.model.blast import BlastRadius, of_brokers, of_connector, of_topic, touched
from engine.model.incidents import Alert, Capture
from tests.unit.incident.scene import alert
from tests.unit.model.test_blast import DIRS, scene
from tests.unit.model.test_pictures import fact

AT = datetime(2026, 11, 26, 12, tzinfo=UTC)


def about(**entity: str) -> Alert:
    made = alert("broker-silent", 0)
    return replace(made, key=(made.key[0], made.key[1], tuple(sorted(entity.items()))))


def subject(of: Alert, **picture: object) -> str:
    radius = blast_of(of, scene())
    return radius.subject if radius is not None else ""


def test_the_most_specific_thing_that_the_picture_has_is_the_subject() -> None:
    assert subject(about(cluster="prod", broker="1")) == "broker 1"
    assert subject(about(cluster="prod", node="2")) == "broker 2"
    assert subject(about(broker="1", topic="orders")) == "topic orders"
    assert subject(about(partition="orders-1")) == "topic orders"
    assert subject(about(group="audit", partition="orders-1")) == "group audit"
    assert subject(about(connector="cdc", task="0")) == "connector cdc"
    assert subject(about(rack="a")) == "rack a"
    assert subject(about(cluster="prod")) == subject(about(broker="9")) == subject(about(node="-1")) == ""


def test_a_disk_that_an_alert_names_is_the_subject_where_the_broker_has_several() -> None:
    dirs = [fact("log-dir", f"1/{path}/0", broker=1, path=path, partitions=names) for path, names in DIRS.items()]
    failed = replace(about(broker="1"), captures={"dir": Capture(("/disk/a",))})
    radius = blast_of(failed, scene(*dirs))
    assert radius is not None
    assert radius.subject == "/disk/a of broker 1"
    assert blast_of(replace(failed, captures={"dir": Capture(("/disk/x",))}), scene(*dirs)) == of_brokers(
        ["1"], "broker 1", scene(*dirs)
    )


def test_a_sentence_names_what_is_touched_with_counts_and_a_few_names() -> None:
    assert sentences(of_brokers(["1"], "broker 1", scene())) == (
        "As the cluster was at 2026-11-26 12:00:00 UTC: broker 1 led 2 partitions (account_event-0, orders-0); had the only"
        " replica of account_event-0; without it fewer replicas are in sync than min.insync.replicas in pairs. Read by 2 groups"
        " (audit, connect-archive); read by sink connector archive; written by source connector cdc."
    )
    assert sentences(of_connector("cdc", scene())) == (
        "As the cluster was at 2026-11-26 12:00:00 UTC: connector cdc uses topic account_event. Read by group audit."
    )
    assert (
        sentences(of_topic("orders", scene()))
        == "As the cluster was at 2026-11-26 12:00:00 UTC: topic orders is read by group shipping."
    )
    many = BlastRadius("broker 1", AT, led=touched(f"t-{number}" for number in range(1200)))
    assert sentences(many).endswith("broker 1 led 1,200 partitions (t-0, t-1, t-2, t-3, t-4 and 1,195 more).")
    assert sentences(BlastRadius("broker 1", AT)) == ""


def test_a_sentence_is_in_the_language_of_its_words() -> None:
    assert sentences(of_topic("orders", scene()), words_of("ko")) == (
        "2026-11-26 12:00:00 UTC 기준 클러스터 상태, 토픽 orders: 읽는 쪽: 그룹 shipping."
    )
    told = sentences(of_brokers(["1"], "broker 1", scene()), words_of("ko"))
    assert (
        "브로커 1: 리더를 맡고 있던 파티션 2개(account_event-0, orders-0); 유일한 레플리카를 가진 파티션: account_event-0;"
        in told
    )
    assert sentences(BlastRadius("/disk/a of broker 1", AT, led=touched(["t-0"])), words_of("ko")).endswith(
        "브로커 1의 /disk/a: 리더를 맡고 있던 파티션 t-0."
    )
