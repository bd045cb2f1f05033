"""What excuses, resolves or vouches for a broker comes from those who may say so; what others quote changes nothing.

The story is that of the broker that died without a word (samples/4-silent-broker).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby

import pytest

from engine.model.incidents import Incident
from engine.model.records import NOBODY, SPEAKS_FOR, Labels, RawLine
from engine.pipeline import replay
from tests.rulepack.playing import STORIES, Story, lines_of, one, plan, play, story

SILENT = story(next(folder for folder in STORIES if folder.name.startswith("4-"))).only(lambda name: name.startswith("broker-"))
DYING = "broker-1/server.log.2022-10-05-17"
STOPS = """\
[2022-10-05 17:05:45,120] INFO [KafkaServer id=1] shutting down (kafka.server.KafkaServer)
[2022-10-05 17:05:46,120] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)
"""
ORDERS = """\
2022-10-05 17:00:00.000  INFO 1 --- [main] com.example.orders.Orders : order 41 was placed
{lines}
2022-10-05 17:50:00.000  INFO 1 --- [main] com.example.orders.Orders : order 97 was placed
"""
QUOTED = "2022-10-05 17:06:{second}.000  INFO 1 --- [main] com.example.orders.Orders : {text}"


def quoting(*texts: str) -> str:
    """Return the log of an application that prints `texts`, one a second, from 17:06:00 on."""
    return ORDERS.format(lines="\n".join(QUOTED.format(second=f"{n:02d}", text=text) for n, text in enumerate(texts)))


def raised(told: Story) -> list[tuple[str, str, str]]:
    return sorted((incident.rule, incident.labels.get("broker", ""), incident.status) for incident in play(told))


WENT_SILENT = [("broker-silent", "1", "open")]


def test_the_story_as_it_is() -> None:
    assert raised(SILENT) == WENT_SILENT


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["the last order said [KafkaServer id=1] shutting down"], id="in-the-middle"),
        pytest.param(["[KafkaServer id=1] shutting down"], id="at-the-beginning"),
        pytest.param(["[KafkaServer id=1] shutting down", "[KafkaServer id=1] shut down completed"], id="twice"),
        pytest.param(
            ["note: [QuorumController id=9] Unfenced broker 1 has requested and been granted a controlled shutdown."],
            id="by-no-controller",
        ),
        pytest.param(["note: Terminating process due to signal SIGTERM"], id="signal"),
        pytest.param(
            [
                "[QuorumController id=9] Becoming the active controller at epoch 7",
                "[QuorumController id=9] The request from broker 1 to shut down has been granted",
                "[QuorumController id=9] Unfenced broker 1 has requested and been granted a controlled shutdown.",
            ],
            id="as-if-it-were-a-controller",
        ),
    ],
)
def test_an_application_that_quotes_a_planned_stop_excuses_nobody(texts: list[str]) -> None:
    assert raised(SILENT.with_log("app.log", quoting(*texts))) == WENT_SILENT


@pytest.mark.parametrize("package", ["connect.runtime.WorkerSinkTask", "clients.producer.KafkaProducer"])
def test_clients_and_connect_speak_for_no_broker_though_their_packages_are_kafka_s(package: str) -> None:
    texts = ["[KafkaServer id=1] shutting down", "[KafkaServer id=1] shut down completed"]
    granted = ["[QuorumController id=9] The request from broker 1 to shut down has been granted"] * 2
    log = quoting(*texts, *granted).replace("com.example.orders.Orders", f"org.apache.kafka.{package}")
    assert raised(SILENT.with_log("app.log", log)) == WENT_SILENT


@pytest.mark.parametrize(
    "passed_on",
    [
        pytest.param(lambda line, _: line, id="line"),
        pytest.param(lambda line, _: f"broker-1  | {line}", id="compose"),
        pytest.param(lambda line, at: _document(at, "kafka.server.KafkaServer", line[32:]), id="document"),
    ],
)
def test_a_message_in_which_an_application_passes_on_a_broker_s_line_is_its_own(passed_on: Callable[[str, str], str]) -> None:
    stamps = [f"2022-10-05T17:{minute:02d}:00.000Z" for minute in (0, 6, 7, 50)]
    lines = zip(stamps, ["order 41", *STOPS.splitlines(), "order 97"], strict=True)
    app = "".join(f"{_document(at, 'com.example.orders.Orders', passed_on(line, at))}\n" for at, line in lines)
    assert raised(SILENT.with_log("app.log", app)) == WENT_SILENT


def _document(at: str, logger: str, message: str) -> str:
    return json.dumps({"@timestamp": at, "level": "INFO", "logger_name": logger, "message": message})


@pytest.mark.parametrize(
    "text",
    [
        "he read: [KafkaServer id=1] started",
        "[KafkaServer id=1] started",
        "[QuorumController id=9] The request from broker 1 to unfence has been granted",
        "[KafkaRaftServer nodeId=1] Kafka Server started",
    ],
)
def test_an_application_takes_no_complaint_of_others_back(text: str) -> None:
    told = SILENT.with_log("app.log", quoting(*["working"] * 20, text, text))
    (incident,) = play(told)
    assert (incident.rule, incident.status) == ("broker-silent", "open")


def test_an_application_that_quotes_itself_into_the_role_of_the_broker_shows_no_life_of_it() -> None:
    lines = [f"[KafkaServer id=1] order {number} is on its way" for number in range(50)]
    assert raised(SILENT.with_log("app.log", quoting(*lines))) == WENT_SILENT


def test_an_application_with_neither_loggers_nor_a_header_of_its_own_is_kept_quiet_by_the_configuration() -> None:
    stamps = ("2022-10-05 17:30:00,000", "2022-10-05 17:31:00,000")
    app = "".join(f"{stamp} [KafkaServer id=1] shutting down\n" for stamp in stamps)
    silenced = [*lines_of(SILENT), *_lines("app.log", app, {**SILENT.labels, SPEAKS_FOR: NOBODY})]
    assert [(each.rule, each.status) for each in _final(silenced)] == [("broker-silent", "open")]


@pytest.mark.parametrize("stamp", ["20:04:00,000", "23:59:59,999", "17:33:00,000"])
@pytest.mark.parametrize(
    "text",
    [
        "Rolled new log segment at offset 1 (kafka.log.Log)",
        STOPS.splitlines()[0][32:],
        "[KafkaServer id=1] started (kafka.server.KafkaServer)",
    ],
)
def test_a_line_stamped_ahead_in_the_log_of_the_dead_resolves_nothing(stamp: str, text: str) -> None:
    first, second, *rest = SILENT.logs[DYING].splitlines(keepends=True)
    ahead = f"[2022-10-05 {stamp}] INFO {text}\n"
    (incident,) = play(SILENT.with_log(DYING, "".join([first, second, ahead, *rest])))
    assert (incident.rule, incident.status) == ("broker-silent", "open")


def test_what_comes_later_for_certain_shows_life_all_the_same() -> None:
    alive = "[2022-10-05 17:56:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
    (incident,) = play(SILENT.with_log(DYING, SILENT.logs[DYING] + alive))
    assert (incident.rule, incident.status) == ("broker-silent", "resolved")


def _compose(told: Story) -> Story:
    """Return the logs of all brokers as one output of Compose."""
    rows = sorted((line[:24], name.partition("/")[0], line) for name, text in told.logs.items() for line in text.splitlines())
    return Story({"compose.log": "".join(f"{name}  | {line}\n" for _, name, line in rows)}, told.labels)


def _docker(told: Story) -> Story:
    """Return the logs as the JSON files of Docker, one a container."""
    logs = {}
    for name, texts in groupby(sorted(told.logs.items()), key=lambda item: item[0].partition("/")[0]):
        lines = [line for _, text in texts for line in text.splitlines()]
        rows = (json.dumps({"log": line + "\n", "stream": "stdout", "time": _utc(line)}) for line in lines)
        logs[f"{name}-json.log"] = "\n".join(rows) + "\n"
    return Story(logs, told.labels)


def _utc(line: str) -> str:
    return f"{line[1:11]}T{line[12:20]}.{line[21:24]}Z"


def _topic(told: Story) -> Story:
    """Return the logs as a topic names them that hosts ship them to."""
    return Story({f"logs/kafka-{name.replace('/', ':/var/log/kafka/')}": text for name, text in told.logs.items()}, told.labels)


def _without_loggers(told: Story) -> Story:
    """Return the logs in a layout that prints no loggers."""
    return Story(
        {name: "".join(f"{line.rpartition(' (')[0]}\n" for line in text.splitlines()) for name, text in told.logs.items()},
        told.labels,
    )


def _abbreviated(told: Story) -> Story:
    return Story(
        {
            name: text.replace("(kafka.server.", "(k.s.").replace("(kafka.coordinator.group.", "(k.c.g.")
            for name, text in told.logs.items()
        },
        told.labels,
    )


@pytest.mark.parametrize(
    "shape",
    [lambda told: told, _compose, _docker, _topic, _without_loggers, _abbreviated],
    ids=["files", "compose", "docker", "topic", "no-loggers", "abbreviated"],
)
def test_a_planned_stop_excuses_and_a_death_does_not_whatever_the_log_comes_in(shape: Callable[[Story], Story]) -> None:
    planned = SILENT.with_log(DYING, SILENT.logs[DYING] + STOPS)
    assert raised(shape(SILENT)) == WENT_SILENT
    assert [rule for rule, _, _ in raised(shape(planned))] == []
    app = Story({**shape(planned).logs, "app.log": quoting("he read [KafkaServer id=1] started")}, planned.labels)
    assert [rule for rule, _, _ in raised(app)] == []


def test_a_stop_that_the_rotated_next_file_tells_excuses() -> None:
    assert raised(SILENT.with_log("broker-1/server.log", STOPS)) == []


def test_a_fragment_of_one_log_is_recognised_by_itself() -> None:
    fragment = (
        STOPS
        + """\
[2022-10-05 17:05:47,000] WARN [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error in response for fetch request (k.s.R)
java.io.IOException: Connection to 1 was disconnected before the response was read
"""
    )
    assert raised(Story({"pasted.txt": fragment})) == []


def _lines(name: str, text: str, labels: Labels) -> Iterable[RawLine]:
    return [RawLine(name, offset, line.encode(), 0, None, labels) for offset, line in enumerate(text.splitlines())]


def _final(lines: Iterable[object]) -> list[Incident]:
    final = {incident.id: incident for incident in replay(lines, plan())}  # type: ignore[arg-type]
    return [incident for incident in final.values() if incident.status not in ("merged", "retracted")]


def test_it_is_one_incident_with_its_cause() -> None:
    assert one(SILENT.with_log("app.log", quoting("[KafkaServer id=1] shutting down"))).rule == "broker-silent"
