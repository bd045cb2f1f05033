"""The commands of a fix at the time of an incident, and on the platform of its lines."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from engine.incident.platforms import LineSpan, Platform, ProcessPlace, fitted, place_of
from engine.model.incidents import RenderedStep
from tests.unit.incident.scene import NOON, minute

SPAN = LineSpan(NOON, minute(20))
KILLED = "journalctl -k --since '2 hours ago' --grep 'Out of memory|oom-kill|I/O error|Killed process'"
BROKEN = "journalctl -k --since '7 days ago' --grep 'I/O error|EXT4-fs'"
UNIT = "journalctl -u kafka --since '1 hour ago'"
MACHINE = ProcessPlace(Platform.MACHINE)


def run(command: str, place: ProcessPlace = MACHINE, span: LineSpan = SPAN) -> str:
    [step] = fitted([RenderedStep("Look", "os", run=command)], place, span)
    return step.run


def test_the_journal_is_read_at_the_time_of_the_incident_with_its_zone() -> None:
    about = "--since '2022-10-05 10:00 UTC' --until '2022-10-05 12:30 UTC'"
    assert run(KILLED) == f"journalctl -k {about} --grep 'Out of memory|oom-kill|I/O error|Killed process'"
    assert run(BROKEN).startswith("journalctl -k --since '2022-09-28 12:00 UTC' --until '2022-10-05 12:30 UTC'")
    last_200 = "journalctl -u kafka.service --no-pager -n 200"
    assert run(last_200) == f"{last_200} --since '2022-10-05 11:00 UTC' --until '2022-10-05 12:30 UTC'"


def test_a_time_of_another_zone_is_the_same_instant() -> None:
    seoul = NOON.astimezone(timezone(timedelta(hours=9)))
    assert run(UNIT, span=LineSpan(seoul, None)) == (
        "journalctl -u kafka --since '2022-10-05 11:00 UTC' --until '2022-10-05 12:10 UTC'"
    )


def test_without_a_date_and_with_a_missing_value_a_command_stays_as_it_is() -> None:
    assert run(KILLED, span=LineSpan(None, None)) == KILLED
    assert run("journalctl -u ${unit:?} --since '1 hour ago'") == "journalctl -u ${unit:?} --since '1 hour ago'"
    assert run("df -h", ProcessPlace(Platform.WINDOWS)) == "df -h"


@pytest.mark.parametrize(
    ("place", "printed", "state"),
    [
        (
            ProcessPlace(Platform.MACHINE, unit="confluent-server.service"),
            "journalctl -u confluent-server.service --since '2022-10-05 11:00 UTC' --until '2022-10-05 12:30 UTC'",
            "journalctl -k --since",
        ),
        (
            ProcessPlace(Platform.DOCKER, "broker-1"),
            "docker logs --timestamps --since 2022-10-05T11:00:00Z --until 2022-10-05T12:30:00Z broker-1",
            "docker inspect --format ",
        ),
        (ProcessPlace(Platform.DOCKER), "docker ps -a", "docker ps -a"),
        (
            ProcessPlace(Platform.COMPOSE),
            "docker compose logs --timestamps --since 2022-10-05T11:00:00Z --until 2022-10-05T12:30:00Z",
            "docker compose ps -a",
        ),
        (
            ProcessPlace(Platform.KUBERNETES, "kafka", "prod-kafka-0", "kafka-prod"),
            "kubectl -n kafka-prod logs prod-kafka-0 -c kafka --timestamps --since-time=2022-10-05T11:00:00Z",
            "kubectl -n kafka-prod describe pod prod-kafka-0",
        ),
        (ProcessPlace(Platform.KUBERNETES), "kubectl get pods -A -o wide", "kubectl get pods -A -o wide"),
        (ProcessPlace(Platform.WINDOWS), "", "Get-WinEvent -FilterHashtable @{LogName='System'; Level=1,2,3; StartTime="),
    ],
)
def test_the_command_is_that_of_the_platform(place: ProcessPlace, printed: str, state: str) -> None:
    assert run(UNIT, place) == printed
    assert run(KILLED, place).startswith(state)


def test_a_disk_is_looked_at_where_its_kernel_is() -> None:
    [step] = fitted([RenderedStep("Look", "os", run=BROKEN)], ProcessPlace(Platform.KUBERNETES, pod="a-0"), SPAN)
    assert (step.do, step.run[:13]) == ("Look (on the node of the pod)", "journalctl -k")
    assert run(BROKEN, ProcessPlace(Platform.DOCKER, "broker-1")).startswith("journalctl -k --since '2022")


@pytest.mark.parametrize(
    ("labels", "sources", "text", "place"),
    [
        ({}, ["server.log"], "ERROR in /var/lib/kafka", MACHINE),
        ({}, ["journald/h1:kafka.service"], "", ProcessPlace(Platform.MACHINE, unit="kafka.service")),
        ({}, ["docker/broker-1.log", "docker/broker-1.log.1"], "", ProcessPlace(Platform.DOCKER, "broker-1")),
        ({}, ["docker/broker-1.log", "docker/broker-2.log"], "", ProcessPlace(Platform.DOCKER)),
        ({"container": "broker-1"}, ["compose.log#broker-1"], "", ProcessPlace(Platform.COMPOSE)),
        ({}, ["compose.log#kafka-1", "compose.log#kafka-2"], "", ProcessPlace(Platform.COMPOSE)),
        ({}, ["stdin#broker-1", "stdin#broker-2"], "", MACHINE),  # parts of a stream
        ({"container": "kafka"}, ["all.log#a-0/kafka"], "", ProcessPlace(Platform.KUBERNETES, "kafka", "a-0")),
        (
            {"namespace": "n", "pod": "a-0", "container": "kafka"},
            ["/var/log/pods/n_a-0_1/kafka/0.log"],
            "",
            ProcessPlace(Platform.KUBERNETES, "kafka", "a-0", "n"),
        ),
        ({}, ["server.log"], "resolve prod-kafka-0.prod-kafka-brokers.kafka.svc", ProcessPlace(Platform.KUBERNETES)),
        ({}, ["server.log"], r"Failed to clean up log in dir C:\kafka\logs due to IOException", ProcessPlace(Platform.WINDOWS)),
        ({}, ["server.log"], r"an expression d:\d+ is no path", MACHINE),
    ],
)
def test_the_place_follows_from_labels_sources_and_lines(
    labels: dict[str, str], sources: list[str], text: str, place: ProcessPlace
) -> None:
    assert place_of(labels, sources, [text]) == place
