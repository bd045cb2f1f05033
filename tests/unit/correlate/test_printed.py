"""What a process runs with is what it printed last; of several clients, the one that the alert is about; in doubt nothing."""

from __future__ import annotations

from engine.correlate.printed import MAX_CLIENTS, add_printed, printed_by
from engine.model.matches import Match
from tests.building import match, plan, setting, signature
from tests.unit.correlate.saying import alerts

SIZE = "max.request.size"


def dump(seconds: float, size: int, client: str = "p", source: str = "a.log", labels: dict[str, str] | None = None) -> Match:
    return match("config:ProducerConfig", seconds, source, labels=labels, **{SIZE: str(size), "client.id": client})


def consumer(group: str, polls: int, client: str, source: str = "a.log") -> Match:
    settings = {"max.poll.records": str(polls), "group.id": group, "client.id": client}
    return match("config:ConsumerConfig", 0, source, **settings)


def told(*items: Match, where: str = "client", name: str = SIZE) -> dict[str, str]:
    """Return the settings of the only alert of a rule whose fix sets `name` at `where`."""
    (alert,) = alerts(items, plan(signature("r", runbook=setting(where, name))), "r")
    return dict(alert.settings)


def test_the_process_in_trouble_runs_with_what_it_printed() -> None:
    assert told(dump(0, 5), match("r", 10)) == {f"ProducerConfig {SIZE}": "5"}


def test_also_when_it_was_read_later() -> None:
    assert told(match("r", 10), dump(0, 5)) == {f"ProducerConfig {SIZE}": "5"}


def test_the_last_start_counts_whatever_was_read_first() -> None:
    assert told(dump(5, 6), dump(0, 5), match("r", 10)) == {f"ProducerConfig {SIZE}": "6"}


def test_a_rotated_file_of_the_same_log_counts() -> None:
    assert told(dump(0, 5, source="server.log.1"), match("r", 10, "server.log")) == {f"ProducerConfig {SIZE}": "5"}


def test_another_log_does_not() -> None:
    assert told(dump(0, 5, source="b.log"), match("r", 10)) == {}


def test_clients_that_disagree_say_nothing_unless_one_is_named() -> None:
    both = (dump(0, 5, "p"), dump(0, 6, "q"))
    assert told(*both, match("r", 10)) == {}
    assert told(*both, match("r", 10, client="q")) == {f"ProducerConfig {SIZE}": "6"}
    assert told(dump(0, 5, "p"), dump(0, 5, "q"), match("r", 10)) == {f"ProducerConfig {SIZE}": "5"}


def test_a_worker_runs_a_task_with_the_producer_made_for_it() -> None:
    own = {"connector": "cdc", "task": "0"}
    others = (dump(0, 5, "connect-offsets"), dump(0, 6, "x", labels={**own, "task": "1"}))
    failed = match("r", 10, labels=own)
    by_context = told(*others, dump(0, 7, "x", labels=own), failed, where="worker", name=f"producer.{SIZE}")
    by_client = told(
        *others, dump(0, 7, "connector-producer-cdc-0"), failed, where="connector", name=f"producer.override.{SIZE}"
    )
    assert by_context == by_client == {f"ProducerConfig {SIZE}": "7"}


def test_a_group_is_known_by_its_name_in_any_log() -> None:
    group = "max.poll.records"
    assert told(consumer("g", 50, "c"), match("r", 10, "broker.log", group="g"), name=group) == {
        f"ConsumerConfig {group}": "50"
    }
    assert told(consumer("h", 50, "c"), match("r", 10, group="g"), name=group) == {}


def test_the_brokers_count_for_everybody_where_all_agree() -> None:
    def broker(source: str, size: int) -> Match:
        return match("config:KafkaConfig", 0, source, **{"message.max.bytes": str(size)})

    failed = match("r", 10, "client.log")
    agreed = told(broker("1.log", 9), broker("2.log", 9), failed, where="broker", name="message.max.bytes")
    assert agreed == {"KafkaConfig message.max.bytes": "9"}
    assert told(broker("1.log", 9), broker("2.log", 8), failed, where="broker", name="message.max.bytes") == {}


def test_of_many_clients_those_that_started_last_are_kept() -> None:
    many = [printed_by(dump(float(n), n, f"c-{n}")) for n in range(MAX_CLIENTS + 5)]
    forward: dict[str, object] = {}
    backward: dict[str, object] = {}
    changed = [add_printed(forward, each) for each in many]  # type: ignore[arg-type]
    assert all(changed)
    assert not [add_printed(backward, each) for each in reversed(many)][-1]  # type: ignore[arg-type]
    assert forward == backward
    assert len(forward) == MAX_CLIENTS
