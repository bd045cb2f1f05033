"""What an outage touches, by a picture: leaders, only replicas, what falls below its minimum, who reads and writes."""

from __future__ import annotations

from engine.model.blast import MOST_NAMES, of_brokers, of_connector, of_group, of_log_dir, of_topic, touched
from engine.model.pictures import ClusterPicture, StatedFact
from tests.unit.model.test_pictures import broker, fact, group, lag, partition, pictured, topic


def scene(*more: StatedFact) -> ClusterPicture:
    """Return three brokers with a topic on one of them, one on all, and one that needs two of two."""
    return pictured(
        *(broker(id_, rack="a" if id_ < 3 else "b") for id_ in (1, 2, 3)),
        *(topic("account_event"), partition("account_event", 0)),
        *(topic("orders", 2, "min.insync.replicas=2"), partition("orders", 0, 1, "1,2,3", "1,2,3")),
        partition("orders", 1, 2, "2,3,1", "1,2,3"),
        *(topic("pairs", 1, "min.insync.replicas=2"), partition("pairs", 0, 2, "2,1", "1,2")),
        *(group("shipping"), lag("shipping", "orders", 4), group("audit"), lag("audit", "account_event", 0)),
        *(group("connect-archive"), lag("connect-archive", "pairs", 0)),
        *(fact("connector", "cdc", connector="cdc", type="source"), fact("connector-topics", "cdc", topics='"account_event"')),
        fact("connector-topics", "archive", topics='"pairs"'),
        *more,
    )


def test_a_broker_touches_what_it_led_and_those_who_use_what_stops() -> None:
    radius = of_brokers(["1"], "broker 1", scene())
    assert radius.led.names == ("account_event-0", "orders-0")
    assert radius.lone.names == ("account_event-0",)
    assert radius.below_min_isr.names == ("pairs",)  # orders has two others in sync
    assert radius.topics.names == ("account_event", "pairs")
    assert (radius.groups.names, radius.writers.names) == (("audit", "connect-archive"), ("cdc",))
    assert radius.readers.names == ("archive",)  # its group is there, so it reads


def test_a_broker_whose_partitions_all_go_on_touches_those_that_it_led() -> None:
    radius = of_brokers(["3"], "broker 3", scene(topic("c", 1), partition("c", 0, 3, "3,1,2", "1,2,3")))
    assert (radius.lone.count, radius.below_min_isr.count) == (0, 0)
    assert radius.topics.names == ("c",)


def test_a_rack_touches_more_than_each_of_its_brokers() -> None:
    radius = of_brokers(["1", "2"], "rack a", scene())
    assert radius.lone.names == ("account_event-0", "pairs-0")
    assert radius.below_min_isr.names == ("orders",)


def test_of_several_disks_one_touches_its_own_partitions() -> None:
    dirs = [fact("log-dir", f"1/{path}/0", broker=1, path=path, partitions=names) for path, names in DIRS.items()]
    radius = of_log_dir("1", "/disk/b", scene(*dirs))
    assert (radius.subject, radius.led.names, radius.lone.count) == ("/disk/b of broker 1", ("orders-0",), 0)


DIRS = {"/disk/a": "account_event-0,pairs-0", "/disk/b": "orders-0,orders-1"}


def test_a_topic_touches_its_readers_and_writers() -> None:
    radius = of_topic("account_event", scene())
    assert (radius.lone.names, radius.groups.names, radius.writers.names) == (("account_event-0",), ("audit",), ("cdc",))
    assert not of_topic("orders", scene()).below_min_isr
    short = scene(partition("orders", 0, 1, "1,2,3", "1", minute=1))
    assert of_topic("orders", short).below_min_isr.names == ("orders",)


def test_a_group_touches_its_topics_and_a_sink_is_its_group() -> None:
    assert of_group("audit", scene()).topics.names == ("account_event",)
    assert of_group("audit", scene()).writers.names == ("cdc",)
    assert of_group("connect-archive", scene()).readers.names == ("archive",)


def test_a_connector_touches_those_who_read_what_it_writes() -> None:
    radius = of_connector("cdc", scene())
    assert (radius.topics.names, radius.groups.names) == (("account_event",), ("audit",))
    assert not of_connector("archive", scene()).groups  # it reads


def test_internal_topics_come_last_and_names_are_bounded() -> None:
    internal = [topic("__offsets"), partition("__offsets", 0)]
    assert of_brokers(["1"], "broker 1", scene(*internal)).lone.names == ("account_event-0", "__offsets-0")
    many = touched(f"t-{number}" for number in range(3000))
    assert (many.count, len(many.names)) == (3000, MOST_NAMES)
