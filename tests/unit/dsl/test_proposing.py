"""What varies in a log line becomes a hole, and the pattern still fits the line."""

from __future__ import annotations

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from engine.dsl.patterns import compile_pattern
from engine.dsl.proposing import merged, propose


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        (
            "[Broker broker=0] no append on partition dawn-0",
            "[Broker broker={broker:int}] no append on partition {tp:tp}",
        ),
        ("WorkerSourceTask{id=cdc-source-0} failed to send", "WorkerSourceTask{id={connector}-{task:int}} failed to send"),
        ("The message is 1125872 bytes", "The message is {message:bytes} bytes"),
        ("expired 0 offsets in 30 ms", "expired {expired:int} offsets in {offsets:ms} ms"),
        ("Node -1 (kafka-1/10.0.0.5:9092) left", "Node {node:int} ({host:host}) left"),
        ("[Consumer clientId=c-1, groupId=g-2] left", "[Consumer clientId={client}, groupId={group}] left"),
        ("cannot write to /var/lib/kafka/a-1", "cannot write to {path:path}"),
        ("Shrinking ISR from Set(0, 1) now", "Shrinking ISR from Set({}) now"),
        ("missing brokers [1, 2]", "missing brokers [{brokers:list}]"),
        ("rate 3.5 of broker 3 and broker 4", "rate {rate:num} of broker {broker:int} and broker {broker2:int}"),
        ("'max.request.size' of 'orders-eu'", "'max.request.size' of '{size:quoted}'"),
        ("SASL_SSL and log4j2 are kept", "SASL_SSL and log4j2 are kept"),
        ("a {literal} brace", r"a \{literal} brace"),
        ("left: consumer-1-6f1d2c3b-1111-2222-3333-444455556666", "left: {member}"),
    ],
)
def test_what_varies_becomes_a_hole_of_its_type(line: str, pattern: str) -> None:
    assert propose(line).pattern == pattern


WORDS = ["partition a-1", "broker=3", "10.0.0.1:9092", "12 bytes", "'x y'", "{a}", "/tmp/x", "[1,2]", "Set(1)", "5", "-7", "{}"]


@given(
    st.lists(
        st.sampled_from(WORDS) | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=8),
        min_size=1,
    )
)
@example(["'\"'"])
def test_a_proposed_pattern_fits_its_line(words: list[str]) -> None:
    line = " ".join(words).strip()
    if line:
        assert re2.search(compile_pattern(propose(line).pattern).regex, line), propose(line).pattern


def test_lines_of_one_shape_become_one_pattern() -> None:
    lines = ["offset commit of orders failed", "offset commit of bills failed", "the coordinator is gone"]
    assert merged([propose(line).pattern for line in lines]) == ["offset commit of {} failed", "the coordinator is gone"]
