"""The exception chain, however the trace is laid out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.parse.exceptions import exception_chain

EXECUTION = "java.util.concurrent.ExecutionException"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"


def test_causes_are_read_outermost_first() -> None:
    trace = f"{EXECUTION}: failed\n\tat a.B.c(B.java:1)\nCaused by: {TIMEOUT}: Expiring\n\t... 3 more"
    assert exception_chain(f"a message\n{trace}\nCaused by: java.io.IOException\n") == (
        EXECUTION,
        TIMEOUT,
        "java.io.IOException",
    )


def test_a_class_passed_on_in_a_message_counts_once_where_it_stands_last() -> None:
    assert exception_chain(f"{EXECUTION}: {TIMEOUT}: Expiring 1 record(s)") == (EXECUTION, TIMEOUT)
    trace = f"{EXECUTION}: {TIMEOUT}: x\nCaused by: a.b.MiddleException: y\nCaused by: {TIMEOUT}: x"
    assert exception_chain(trace) == (EXECUTION, "a.b.MiddleException", TIMEOUT)


def test_a_trace_on_one_line() -> None:
    trace = f"a.b.DataException: Failed to deserialize:  at c.D.e(D.java:1) at f.G.h(G.java:2) Caused by: {TIMEOUT}: x at i.J"
    assert exception_chain(trace) == ("a.b.DataException", TIMEOUT)


@pytest.mark.parametrize(
    "text",
    [
        f"  exception : {TIMEOUT}: Messages are rejected",
        f"send failed; nested exception is {TIMEOUT}: x",
        f'Exception in thread "main" {TIMEOUT}: x',
        f'{{"state":"FAILED","trace":"{TIMEOUT}: x',
        f"  {TIMEOUT}",
        f"Caused by: {TIMEOUT}",
    ],
)
def test_where_a_class_may_stand(text: str) -> None:
    assert exception_chain(text) == (TIMEOUT,)


@pytest.mark.parametrize(
    "text",
    [
        "no exception at all",
        f"Retrying after {TIMEOUT} was thrown",
        "\tat a.b.CException.<init>(CException.java:1)",
        f"\tSuppressed: {TIMEOUT}: x\n\tCaused by: {TIMEOUT}",
        "Error: something",
    ],
)
def test_where_it_does_not_count(text: str) -> None:
    assert exception_chain(text) == ()


def test_inner_classes_keep_their_name() -> None:
    assert exception_chain("org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists") == (
        "org.apache.zookeeper.KeeperException$NodeExistsException",
    )


@given(st.text(alphabet="ab.CE:\n\t xcaused byException", max_size=200))
def test_any_text_has_a_chain_without_repeats(text: str) -> None:
    chain = exception_chain(text + "Exception")
    assert len(chain) == len(set(chain))
