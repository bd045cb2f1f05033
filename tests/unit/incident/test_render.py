"""What people read has numbers in it; what a shell reads holds nothing that log text could have smuggled in."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.incident.render import command, fitting, host_of, human_bytes, human_ms, prose, setting, step, words
from engine.model.expressions import LANGUAGE, Binary, Call, Literal, NameExpression
from engine.model.rules import OMITTED, Case, Hole, Step, Template
from tests.hostile import HOSTILE
from tests.unit.incident.scene import hole, rule, text

ENV = {"size": 1125872, "limit_ms": 300000, "topic": "AAAA.BBBB-C", "offsets.all": [3, 4], "connect_url": "http://c:8083"}
_OR_NOTHING = Hole(NameExpression("nobody"), instead=OMITTED)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (text("needs ", hole("size", "human"), " (", hole("size", "bytes"), ")"), "needs 1.07 MiB (1,125,872)"),
        (text("after ", hole("limit_ms", "ms")), "after 5 min"),
        (text("on ", hole("topic"), " at ", hole("offsets.all")), "on AAAA.BBBB-C at 3, 4"),
        (text("by ", hole("nobody")), "by <nobody>"),
        (
            text(Hole(NameExpression("nobody"), instead="Somebody"), " and ", Hole(NameExpression("topic"), instead="a topic")),
            "Somebody and AAAA.BBBB-C",
        ),
        (
            text(
                Hole(NameExpression("nobody"), instead="Somebody", others=(NameExpression("no_one"), NameExpression("topic")))
            ),
            "AAAA.BBBB-C",
        ),
        (text(Hole(NameExpression("nobody"), instead="Somebody", others=(NameExpression("no_one"),))), "Somebody"),
        (text("the group ", _OR_NOTHING, ": its coordinator"), "the group: its coordinator"),
        (text("A record (group ", _OR_NOTHING, ", topic ", hole("topic"), ") is"), "A record (topic AAAA.BBBB-C) is"),
        (text("A record (group ", _OR_NOTHING, ") of ", hole("topic")), "A record of AAAA.BBBB-C"),
        (text("A record (group ", Hole(NameExpression("topic"), instead=OMITTED), ")"), "A record (group AAAA.BBBB-C)"),
        (text("It fails (seen: 3; ", _OR_NOTHING, "; ", hole("topic"), ")"), "It fails (seen: 3; AAAA.BBBB-C)"),
        (text("It fails (", hole("topic"), "; seen ", _OR_NOTHING, ")"), "It fails (AAAA.BBBB-C)"),
        (text("It failed: ", _OR_NOTHING), "It failed"),
        (text("It failed: ", _OR_NOTHING, ". It does not go on"), "It failed. It does not go on"),
        (text("A client at ", _OR_NOTHING, " speaks TLS"), "A client speaks TLS"),
        (text("A client of ", _OR_NOTHING, ", which is refused"), "A client, which is refused"),
        (text("A record at offset ", _OR_NOTHING, " is lost"), "A record is lost"),
        (text("Broker ", _OR_NOTHING, " fails"), "Broker fails"),
        (text("A client at ", _OR_NOTHING, hole("topic")), "A client at AAAA.BBBB-C"),
    ],
)
def test_prose(template: Template, said: str) -> None:
    assert prose(template, ENV) == said


def test_durations_are_in_the_language_of_the_text() -> None:
    korean = {**ENV, LANGUAGE: "ko", "duration": "2 h 15 min", "state": "2 h"}
    assert prose(text(hole("limit_ms", "ms")), korean) == "5분"
    assert prose(text(hole("duration"), " ", hole("state")), korean) == "2시간 15분 2 h", "a captured text stays"
    assert prose(text(hole("duration")), {**korean, LANGUAGE: "en"}) == "2 h 15 min"


@pytest.mark.parametrize(
    ("number", "said"), [(512, "512 B"), (1048576, "1 MiB"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB"), (0, "0 B")]
)
def test_sizes(number: int, said: str) -> None:
    assert human_bytes(number) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(530, "530 ms"), (60000, "60 s"), (600000, "10 min"), (8_103_689, "2 h 15 min"), (7_200_000, "2 h"), (1018, "1.02 s")],
)
def test_durations(number: int, said: str) -> None:
    assert human_ms(number) == said


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("zookeeper:2181", "zookeeper"),
        ("kafka-1", "kafka-1"),
        ("kafka-1:9092,kafka-2:9092", "kafka-1"),
        ("kafka-1/10.0.0.5:9092", "kafka-1"),
        ("/10.0.0.5:9092", "10.0.0.5"),
        ("http://connect:8083/connectors", "connect"),
        ("sasl_ssl://user:word@broker.example.net:9093", "broker.example.net"),
        ("[fd00::5]:9092", "fd00::5"),
        ("fd00::5", "fd00::5"),
        ("zk-1:2181,zk-2:2181/kafka", "zk-1"),
    ],
)
def test_a_host_is_the_name_of_an_address(address: str, host: str) -> None:
    peer = Hole(NameExpression("peer"), unit="host", charset="host", source="{peer:host}")
    assert host_of(address) == host
    assert command([text("getent"), text("hosts"), Template((peer,))], {"peer": address}) == f"getent hosts {host}"
    assert prose(Template((peer,)), {"peer": address}) == host


def test_settings_are_plain_and_show_what_is_missing() -> None:
    assert setting(text(Hole(Call("ceil_pow2", (NameExpression("size"),)), charset="num")), ENV) == "2097152"
    assert setting(text(hole("nothing", charset="int")), ENV) == "${nothing:?}"


def test_a_step_that_asks_for_what_is_not_so_is_left_out() -> None:
    refused = Binary("==", NameExpression("reason"), Literal("refused"))
    late = Binary("==", NameExpression("reason"), Literal("late"))
    sized = Call("known", (NameExpression("size"),))
    steps = [
        Step(text("login"), when=refused),
        Step(text("wait"), when=late),
        Step(text("room"), when=sized),
        Step(text("see")),
    ]

    def told(**environment: object) -> list[str]:
        return [prose(each.do, environment) for each in fitting(steps, environment)]

    assert told(reason="late") == ["wait", "see"]
    assert told(reason="late", size=3) == ["wait", "room", "see"]
    assert told() == ["see"]  # a reason that nobody printed is none of these
    assert told(reason="late", **{"reason.all": ["late", "refused"]}) == ["login", "wait", "see"]
    # better some that may not fit than none, but no list of everything
    assert [each.do for each in fitting([Step(text(f"{n}"), when=refused) for n in range(54)], {"reason": "late"})] == [
        text(f"{n}") for n in range(5)
    ]


def test_a_rule_says_it_in_the_words_of_the_first_case_that_surely_holds() -> None:
    unknown = Case(
        Call("known", (NameExpression("user"),)), text("no user ", hole("user")), text("nobody knows ", hole("user"))
    )
    late = Case(Binary(">", NameExpression("wait"), Literal(5)), text("too late"), impact=text("it stops"))
    asked = rule("refused")
    refused = replace(asked, runbook=replace(asked.runbook, cases=(unknown, late)))

    def told(**environment: object) -> tuple[str, ...]:
        said = words(refused, environment)
        return tuple(prose(each, environment) for each in (said.title, said.cause, said.impact))

    assert told() == ("refused", "cause of refused", "impact of refused")
    assert told(wait=9) == ("refused", "too late", "it stops")
    assert told(wait=9, user="eve") == ("nobody knows eve", "no user eve", "impact of refused")


def test_a_command_is_one_line_and_a_missing_value_stops_the_shell() -> None:
    line = command([text("kafka-topics.sh"), text("--topic"), text(hole("table", charset="word"))], ENV)
    assert line == "kafka-topics.sh --topic ${table:?}"
    ran = subprocess.run(["/bin/sh", "-c", f"echo {line}"], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "table" in ran.stderr


def test_parts_of_an_address_are_percent_encoded() -> None:
    url = text(hole("connect_url", charset="url"), "/connectors/", hole("name", charset="word"), "/status")
    assert command([url], {**ENV, "name": "a/b+c"}) == "http://c:8083/connectors/a%2Fb%2Bc/status"


def test_a_path_stands_in_a_command_as_it_is() -> None:
    assert command([text("df"), text(hole("dir", charset="path"))], {"dir": "/srv/kafka-data/d_2"}) == "df /srv/kafka-data/d_2"


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("charset", ["word", "tp", "path", "host", "quoted", "rest", "list", "int", "url", ""])
def test_hostile_values_never_enter_a_command(hostile: str, charset: str) -> None:
    line = command([text("rm"), text(hole("v", charset=charset))], {"v": hostile})
    assert line == "rm ${v:?}"


@given(st.text(max_size=60), st.sampled_from(["word", "tp", "path", "host", "list", "quoted", "rest", "int"]))
def test_a_rendered_command_has_exactly_the_words_of_its_argv(value: str, charset: str) -> None:
    words = shlex.split(command([text("tool"), text("--name=", hole("v", charset=charset))], {"v": value}))
    assert len(words) == 2
    assert words[1] in (f"--name={value}", "--name=${v:?}")


def test_a_step_says_what_a_setting_is_now() -> None:
    given = Step(text("Raise it"), "worker", {"producer.max.request.size": text("2097152"), "acks": text("all")})
    settings = {"ProducerConfig max.request.size": "1048576", "ConsumerConfig max.poll.records": "500"}
    assert step(given, {}, settings).do == "Raise it (now max.request.size=1048576)"
    assert step(given, {}).do == "Raise it"


def test_a_file_that_cannot_be_filled_in_is_not_written_and_says_what_is_missing() -> None:
    content = text('{"topic": "', hole("topic"), '", "partition": ', hole("lone_partition"), "}")
    fix_step = Step(do=text("Give it replicas"), file={"plan.json": content}, run=(text("apply"), text("plan.json")))
    rendered = step(fix_step, {"topic": "orders"})
    assert (rendered.file, rendered.run) == ({}, "apply plan.json")
    assert rendered.do == (
        "Give it replicas. Find out first, as these lines do not tell it: lone partition; then write plan.json"
    )
    assert step(fix_step, {"topic": "orders", "lone_partition": 3}).file == {"plan.json": '{"topic": "orders", "partition": 3}'}


def test_a_value_that_ends_a_sentence_and_the_stop_behind_it_are_one_stop() -> None:
    template = Template(("It answers: ", hole("reason"), ". See its log."))
    assert prose(template, {"reason": "Not allowed."}) == "It answers: Not allowed. See its log."
    assert prose(template, {"reason": "cut off ..."}) == "It answers: cut off .... See its log."
    assert prose(Template(("See ../conf and ", hole("reason"))), {"reason": "a..b"}) == "See ../conf and a..b"
