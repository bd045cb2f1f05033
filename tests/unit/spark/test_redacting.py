"""What waits in the state for the rest of its event holds no secret, and is matched as if it had not been cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cli.rule_tests import lines_of
from engine.codec import dumps, loads
from engine.dsl import builtin_rules, load_tests
from engine.match.redact import redact
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block, RawLine, Record
from engine.parse import assemble, decode_block, unwrap
from engine.ports import Chunk
from engine.spark.redacting import redact_block
from engine.spark.slices import SliceFragments, scan
from engine.spark.streams import Streams, StreamState
from tests.corpus.cases import cases
from tests.unit.spark.test_slices import ERROR, INGESTED, LINES, QUIET, _hear, cut, matches, shipped, text, whole

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SECRET = "Zq7planted9Xw"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
LAST = "Pq7c0nJ4M/Zq8bD1wA=="
WITH_SECRETS = [
    f"[2022-10-05 17:05:02,@@@] ERROR [Worker id=1] Failed, ssl.truststore.password={SECRET} (o.a.k.c.r.Worker)",
    f"{ERROR} password={SECRET}",
    f"org.apache.kafka.common.config.ConfigException: cannot open it with password={SECRET}",
    f'\tsasl.jaas.config = o.a.k.ScramLoginModule required username="u" password="{SECRET}";',
    f"\tbroker.password =\n\t{SECRET}",
    f"jdbc:postgresql://u:{SECRET}@db:5432/x",
    f'{{"level": "error", "msg": "refused, password={SECRET}"}}',
    f'worker-1  | [2022-10-05 17:05:04,@@@] ERROR [c|task-0] WorkerSourceTask{{id=c-0}} api.key="{SECRET}" (o.a.k.c)',
    f"-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}\n{LAST}\n-----END PRIVATE KEY-----",
    f"ssl.key = -----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{LAST}",
]
SECRETS = (SECRET, BODY, LAST)


def in_batches(chunks: Sequence[Chunk], settle: bool) -> tuple[list[Match | ActivitySpan], list[str], list[str]]:
    """What slices of one chunk each say, one a batch; what travelled, and what the state was after each of them."""
    said: list[Match | ActivitySpan] = []
    states: dict[str, StreamState] = {}
    travelled, stored = list[str](), list[str]()
    for chunk in chunks:
        items = list(scan([chunk], shipped()))
        edges = [dumps(item) for item in items if isinstance(item, SliceFragments)]
        streams = Streams(shipped(), {name: loads(dumps(state), StreamState) for name, state in states.items()})
        said += [item for item in items if isinstance(item, Match | ActivitySpan)]
        for told in streams.join(loads(edge, SliceFragments) for edge in edges):
            _hear(said, told)
        for told in streams.settle(chunk.parent_id) if settle else ():
            _hear(said, told)
        states = streams.states
        travelled += edges
        stored += map(dumps, states.values())
    for told in [told for name in list(states) for told in Streams(shipped(), states).close(name)]:
        _hear(said, told)
    return said, travelled, stored


def leaks(texts: Iterable[str], secrets: Sequence[str] = SECRETS) -> list[str]:
    return [each for each in texts if any(secret in each for secret in secrets)]


logs = st.lists(st.sampled_from([*LINES, *WITH_SECRETS, QUIET]), min_size=1, max_size=20).map(text)


@settings(max_examples=150, deadline=None)
@given(logs, st.lists(st.integers(0, 40), max_size=12), st.booleans())
def test_slices_with_secrets_say_what_the_whole_says_and_keep_none(data: bytes, where: list[int], settle: bool) -> None:
    said, travelled, stored = in_batches(cut(data, where), settle)
    assert matches(said) == matches(whole(data))
    assert leaks(stored) == []
    assert leaks(travelled, (BODY, LAST)) == []  # what a line announces that lies in another slice is seen when they are joined


@pytest.mark.parametrize("line", WITH_SECRETS)
def test_an_open_event_is_kept_without_its_secret(line: str) -> None:
    data = text([LINES[0], line])
    _, travelled, stored = in_batches(cut(data, []), settle=False)
    assert "[redacted]" in stored[-1] or "REDACTED" in stored[-1]
    assert leaks([*travelled, *stored]) == []


def test_a_secret_announced_by_the_last_line_before_is_taken_out_when_they_are_joined() -> None:
    data = text([LINES[0], "\tbroker.password =", f"\t{SECRET}", "\tat a.b(C.java:1)"])
    said, _, stored = in_batches(cut(data, [2, 3]), settle=True)
    assert "[redacted]" in stored[-1]
    assert leaks(stored) == []
    assert matches(said) == matches(whole(data))


def test_a_key_is_one_secret_wherever_it_is_cut() -> None:
    lines = [LINES[0], "-----BEGIN PRIVATE KEY-----", *[BODY] * 5, LAST, "-----END PRIVATE KEY-----", "behind it"]
    for at in range(1, len(lines)):
        said, travelled, stored = in_batches(cut(text(lines), [at]), settle=True)
        assert leaks([*travelled, *stored]) == []
        assert matches(said) == matches(whole(text(lines)))


def test_a_secret_that_a_container_runtime_split_goes_whole() -> None:
    parts = [Record("s", 0, "failed: password=Zq7pla", partial=True), Record("s", 30, "nted9Xw was refused")]
    whole = redact_block(Block(tuple(parts), headed=False), shipped().formats, redact)
    assert [record.text for record in whole.records] == ["failed: password=[redacted]", " was refused"]
    first = redact_block(Block((parts[0],), headed=False), shipped().formats, redact)
    joined = redact_block(Block((*first.records, parts[1]), headed=False), shipped().formats, redact)
    assert [record.text for record in joined.records] == [record.text for record in whole.records]


def test_what_holds_no_secret_is_the_same_object() -> None:
    block = Block((Record("s", 0, QUIET), Record("s", 90, "\tat a.b(C.java:1)")), headed=True)
    assert redact_block(block, shipped().formats, redact) is block


LOGS = sorted(path for folder in ("samples", "tests/captured") for path in (ROOT / folder).rglob("*.log"))


@cache
def logs_with_secrets() -> Sequence[tuple[str, list[RawLine]]]:
    """The logs of the rules' own tests, of samples, provoked faults and posts that hold what is taken for a secret."""
    tests = load_tests([builtin_rules()])
    every = [(rule, [line for line in lines_of(test) if isinstance(line, RawLine)]) for rule in tests for test in tests[rule]]
    texts = {case.id: case.log.encode() for case in cases().values()} | {str(path): path.read_bytes() for path in LOGS}
    for name, log in texts.items():
        every.append((name, [RawLine("x.log", at, line, at, INGESTED) for at, line in enumerate(log.splitlines(), 1)]))
    return [(rule, lines) for rule, lines in every if any(redact(_text(line)) != _text(line) for line in lines)]


def _text(line: RawLine) -> str:
    return line.value.decode("utf-8", "replace")


def _events(lines: Sequence[RawLine], conceal: bool) -> Iterator[tuple[str, str, object, str]]:
    """What is matched in the events of some lines, all of them cut open at each of their ends, or whole."""
    formats = shipped().formats
    for block in assemble(unwrap(lines, formats), formats):
        assert isinstance(block, Block)
        kept = redact_block(block, formats, redact) if conceal else block
        for event in decode_block(kept, formats):
            for match in shipped().matcher.match_event(event):
                yield match.rule_id, match.event_id, match.captures, match.text


def test_logs_with_secrets_that_no_batch_cuts_say_exactly_what_they_say() -> None:
    """Their last event is open all the same."""
    logs = logs_with_secrets()
    assert len(logs) >= 20
    for name, lines in logs:
        data = b"".join(line.value + b"\n" for line in lines)
        for settle in (False, True):
            said, _, _ = in_batches([Chunk("x.log", 0, data, 1, INGESTED)], settle)
            assert matches(said) == matches(whole(data)), name


def test_events_with_secrets_that_a_batch_cuts_are_told_by_the_same_rules() -> None:
    """Where what a rule looks for is taken for a secret, it sees it no more: of a few in a hundred, if they are cut."""
    logs = logs_with_secrets()
    other_rules = []
    for name, lines in logs:
        cut_open, whole_ones = list(_events(lines, conceal=True)), list(_events(lines, conceal=False))
        if [each[:2] for each in cut_open] != [each[:2] for each in whole_ones]:
            other_rules.append(name)
        else:
            assert [each[3] for each in cut_open] == [each[3] for each in whole_ones], name
    assert len(other_rules) <= len(logs) * 0.05, other_rules
