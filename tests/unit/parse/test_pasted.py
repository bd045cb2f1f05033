"""What people paste: prefixes, cut beginnings, lost indentation, text without any layout. Level and time are found where there
are any, and every excerpt is as many events as a reader would count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.parse.reading import events

SAMPLES = Path(__file__).parents[3] / "samples"

# what it is, the excerpt, and of each event: level, whether it is dated, innermost exception
EXCERPTS: dict[str, tuple[str, list[tuple[str, bool, str]]]] = {
    "a broker's log pasted with an indentation": (
        "  [2021-08-02 04:05:07,937] ERROR [ReplicaManager broker=0] Error processing append (kafka.server.ReplicaManager)\n"
        "  org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient\n"
        "  [2021-08-02 04:05:08,043] INFO next (kafka.server.ReplicaManager)\n",
        [("ERROR", True, "org.apache.kafka.common.errors.NotEnoughReplicasException"), ("INFO", True, "")],
    ),
    "a document in backticks": (
        '`{"@timestamp":"2020-03-13T13:06:33.070Z","level":"ERROR","message":"x","logger_name":"a.B"}`\n',
        [("ERROR", True, "")],
    ),
    "cells of a spreadsheet": (
        '"2020-03-19 07:10:24.378  INFO 11 --- [ad | p-1] o.a.k.c.network.Selector   : [Producer clientId=p-1] x ({""a"":1})"\n'
        '"[2020-03-19 07:10:25,378] ERROR y (a.B)\na.b.CException: z"\n',
        [("INFO", True, ""), ("ERROR", True, "a.b.CException")],
    ),
    "stamps in quotes that are no lines": (
        '[2020-03-19 07:10:24,378] INFO days are (a.B)\n"2020-03-18 00:00:00 and later"\n',
        [("INFO", True, "")],
    ),
    "an exception in backticks": (
        "```org.apache.kafka.common.errors.NotLeaderOrFollowerException: this broker is not the leader```\n",
        [("", False, "org.apache.kafka.common.errors.NotLeaderOrFollowerException")],
    ),
    "a trace of Ruby, none of it indented": (
        "Crashed: Rdkafka::RdkafkaError: x\n/gems/rdkafka-0.6.0/lib/rdkafka/consumer.rb:355:in `poll'\n"
        "from bin/racecar.rb:17:in `<main>'\n",
        [("", False, "")],
    ),
    "a stack of Python without an exception": (
        'kafka.conn x\nStack (most recent call last):\n  File "a.py", line 1, in <module>\n',
        [("", False, "")],
    ),
    "a code block of a web page": (
        '<pre class="code-java">2015-02-01 10:24:27.231+0800 s.k.KafkaUtils [WARN] x <span class="code-keyword">new</span>\n',
        [("WARN", True, "")],
    ),
    "words in bold": (
        "2019-03-26 23:35:43.390 [main] WARN  o.a.k.c.NetworkClient - **Connection to node -1** could not be established\n",
        [("WARN", True, "")],
    ),
    "bold text of a web page": (
        "**[2020-09-03 04:00:39,075] ERROR Error while deserializing binlog event\n[2020-09-03 04:00:39,075] ERROR x (i.d.C)",
        [("ERROR", True, ""), ("ERROR", True, "")],
    ),
    "the bar of a column": (
        "2020-04-27 13:41:51,230 WARN Connection to node -1 x\n  | 2020-04-27 13:41:52,397 WARN Connection to node -1 x\n",
        [("WARN", True, ""), ("WARN", True, "")],
    ),
    "the stamp was cut off": (
        "ERROR Failed to clean up log for __consumer_offsets-35 (kafka.server.LogDirFailureChannel)\n"
        "java.io.IOException: Permission denied\n        at java.io.RandomAccessFile.setLength(Native Method)\n",
        [("ERROR", False, "java.io.IOException")],
    ),
    "a terminal broke the lines": (
        "[2019-10-06 01:34:11,642] WARN Client session timed out, have not heard from server in 5055ms (org.apache.zoo\n"
        "keeper.ClientCnxn)\n[2019-10-06 01:34:12,236] INFO Client session timed out (org.apache.zookeeper.ClientCnxn)\n",
        [("WARN", True, ""), ("INFO", True, "")],
    ),
    "a stack trace that lost its indentation": (
        "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
        "Caused by: javax.net.ssl.SSLHandshakeException: PKIX path building failed\n"
        "at java.base/sun.security.ssl.Alert.createSSLException(Alert.java:131)\nat java.base/sun.security.ssl.X.y(X.java:1)\n",
        [("", False, "javax.net.ssl.SSLHandshakeException")],
    ),
    "the middle of a stack trace": (
        "    at a.B.c(B.java:1)\nCaused by: a.b.CException: x\n    ... 7 more\n",
        [("", False, "a.b.CException")],
    ),
    "compose, the first line without its prefix": (
        "[2022-02-13 04:12:42,920] ERROR failed to change state (state.change.logger)\n"
        "kafka_1        | kafka.common.StateChangeFailedException: Failed to elect leader\n"
        "kafka_1        |   at kafka.controller.ZkPartitionStateMachine.x(PartitionStateMachine.scala:427)\n",
        [("ERROR", True, ""), ("", False, "kafka.common.StateChangeFailedException")],
    ),
    "compose without the blank behind the bar": (
        "kafka-1  |[2025-09-05 10:35:26,072] INFO [kafka-log-cleaner-thread-0]: \nkafka-1  |      Log cleaner cleaned\n",
        [("INFO", True, "")],
    ),
    "a panel's stamps before the broker's": (
        "2024-12-30 23:29:07 [2024-12-30 20:29:07,820] ERROR Error processing append (kafka.server.ReplicaManager)\n"
        "2024-12-30 23:29:07 org.apache.kafka.common.InvalidRecordException: One or more records have been rejected\n",
        [("ERROR", True, "org.apache.kafka.common.InvalidRecordException")],
    ),
    "librdkafka": ("%3|1621691389.768|FAIL|rdkafka#producer-2| [thrd:k:9092]: Connect failed\n", [("ERROR", True, "")]),
    "a garbage collector between the broker's lines": (
        "2020-06-04 12:25:22,461 INFO Connected. (kafka.zookeeper.ZooKeeperClient) [main]\n"
        "2020-06-04T12:25:22.604+0000: 1.391: [GC pause (young), 0.0096176 secs]\n   [Parallel Time: 5.0 ms, GC Workers: 8]\n",
        [("INFO", True, ""), ("", True, "")],
    ),
    "a configuration dump": (
        "[2019-10-23 03:58:58,952] INFO ProducerConfig values: \n\tbatch.size = 16384\n\tacks = -1\n (org.apache.kafka.P)\n",
        [("INFO", True, "")],
    ),
    "a markdown fence and prose around": (
        "Some words.\n\n```\n[2022-10-05 17:05:39,869] INFO x (a.B)\n```\n",
        [("", False, ""), ("", False, ""), ("INFO", True, "")],
    ),
    "files with the line ends of Windows": (
        "[2022-10-05 17:05:39,869] ERROR x (a.B)\r\njava.io.IOException: y\r\n",
        [("ERROR", True, "java.io.IOException")],
    ),
}


@pytest.mark.parametrize("name", EXCERPTS)
def test_excerpts(name: str) -> None:
    excerpt, expected = EXCERPTS[name]
    found = [(e.level, e.timestamp is not None, e.exception[-1] if e.exception else "") for e in events(excerpt)]
    assert found == expected


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.log*")), ids=lambda path: str(path.relative_to(SAMPLES)))
def test_every_log_of_the_samples_is_read(path: Path) -> None:
    found = events(path.read_bytes())
    assert found
    assert all(event.text for event in found)
