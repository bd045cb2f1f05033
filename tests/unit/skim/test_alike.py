"""Events that are alike but for their digits: told without being read, as if they had been."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from connectors.files import read_path
from engine.match import Matcher
from engine.model.expressions import ItemExpression, NameExpression
from engine.model.matches import Match
from engine.model.records import AnyEvent, LogEvent
from engine.model.rules import Item, Runbook, Signature, Step
from engine.parse import assemble, decode, unwrap
from engine.ports import Chunk
from engine.skim import alike, skimmer, whole
from engine.skim.layouts import example_of
from engine.skim.sight import Sight, sight_of
from engine.skim.whole import Whole
from tests import building
from tests.building import contains, pattern, signature
from tests.rulepack.playing import SAMPLES, plan
from tests.wrapping import ROWS, wrapped

START = datetime(2022, 10, 5, 10)
QUIET = "INFO [Log partition=a-0] Rolled new log segment at offset {} in 3 ms. (kafka.log.Log)"
DENIED = "INFO Principal = User:app-{} is Denied Operation = Describe from host = 10.16.19.{} on resource = Topic:LITERAL:o"
# numbers that rules and layouts tell from others, by their length
TELLING = {1: "0123456789", 2: ("19", "20", "15", "25", "35"), 3: ("127", "404"), 4: ("9092", "1236"), 5: ("40401", "19092")}
Said = tuple[object, ...]
Read = list[tuple[Said, list[Match]]]


@cache
def matcher() -> Matcher:
    return Matcher(plan())


@cache
def sight() -> Sight:
    return sight_of(matcher(), plan().formats)


@pytest.fixture(autouse=True)
def small_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is skimmed, however little it is; what came twice is known."""
    monkeypatch.setattr(whole, "SKIMMED_FROM_BYTES", 0)
    monkeypatch.setattr(skimmer, "ENOUGH_LINES", 2)
    monkeypatch.setattr(alike, "LEARNT_AFTER", 2)
    sight()._alike.clear()
    sight()._known.clear()


def log(events: Sequence[str], layout: str = "[{}] ") -> bytes:
    """Return a log of `events`, one a second, between quiet ones."""
    texts = (text for number, event in enumerate(events) for text in (QUIET.format(number), event, QUIET.format(number)))
    stamps = (START + timedelta(milliseconds=333 * number) for number in range(3 * len(events)))
    return "".join(
        f"{layout.format(stamp.isoformat(' ', 'milliseconds').replace('.', ','))}{text}\n"
        for stamp, text in zip(stamps, texts, strict=True)
    ).encode()


def skimmed(data: bytes, labels: dict[str, str] | None = None, source_id: str = "a.log") -> Read:
    """Return the events with matches of rules that a scan reads or tells."""
    read: list[tuple[AnyEvent, list[Match]]] = []
    scan = Whole(plan(), matcher(), sight, lambda event, found: read.append((event, found)))
    list(scan.read([Chunk(source_id, 0, data, 1, None, labels or {})]))
    return telling(read)


def reference(data: bytes, labels: dict[str, str] | None = None, source_id: str = "a.log") -> Read:
    """Return the same from the stages of the pipeline."""
    formats = plan().formats
    lines = Chunk(source_id, 0, data, 1, None, labels or {}).lines()
    events = decode(assemble(unwrap(lines, formats), formats), formats)
    return telling((event, matcher().match_event(event)) for event in events if isinstance(event, LogEvent))


def telling(read: Any) -> Read:
    rules = ((event, [match for match in found if not match.rule_id.startswith("component:")]) for event, found in read)
    return [(said(event), found) for event, found in rules if found]


def said(event: AnyEvent) -> Said:
    return event.source_id, event.timestamp, event.labels, event.level, event.message, event.text


def told(monkeypatch: pytest.MonkeyPatch) -> list[alike.Told]:
    """Return where the events are noted that are told without being read."""
    events: list[alike.Told] = []
    original = alike.Alike.tell

    def tell(*given: Any) -> alike.Told | None:
        answer = original(*given)
        if answer is not None:
            events.append(answer)
        return answer

    monkeypatch.setattr(alike.Alike, "tell", tell)
    return events


def with_digits(text: str, random: Random) -> str:
    """Return `text` with other numbers of the same lengths."""

    def other(found: re.Match[str]) -> str:
        size = len(found[0])
        if size in TELLING and random.random() < 0.3:
            return random.choice(TELLING[size])
        return "".join(random.choices("0123456789", k=size))

    return re.sub("[0-9]+", other, text)


@cache
def known_events() -> tuple[str, ...]:
    """Return the events of the samples in which a rule finds something, without their stamps; one of those that are alike."""
    formats, found = plan().formats, dict[str, str]()
    for path in sorted(SAMPLES.rglob("*.log")):
        for event in decode(assemble(unwrap(read_path(str(path)), formats), formats), formats):
            if isinstance(event, LogEvent) and (example := example_of(event.text.encode())) and matcher().match_event(event):
                text = event.text[len(example) :]
                found.setdefault(re.sub("[0-9]", "0", text), text)
    return tuple(found.values())


def test_events_alike_are_told_with_their_own_values(monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(monkeypatch)
    data = log([DENIED.format(number, 200 + number) for number in range(10, 40)])
    read = skimmed(data)
    assert read == reference(data)
    assert len(events) == 28
    assert read[-1][1][0].captures["principal"] == "User:app-39"


def test_events_alike_carry_the_items_that_are_asked_for() -> None:
    step = Step(building.text("do"), when=ItemExpression("at_seven"))
    items = (Item("denied", ((contains("is Denied"),),)), Item("at_seven", ((contains("host = 10.16.19.207 "),),)))
    asking = Signature(
        building.rule("denied", runbook=Runbook(*[building.text("")] * 2, (step,))), items, NameExpression("denied")
    )
    rules = replace(plan(), signatures=(asking,), correlations=())
    own, read = Matcher(rules), list[tuple[AnyEvent, list[Match]]]()
    data = log([DENIED.format(number % 10, 200 + number % 10) for number in range(100, 160)])
    sight = sight_of(own, rules.formats)
    list(Whole(rules, own, lambda: sight, lambda event, found: read.append((event, found))).read([Chunk("a.log", 0, data, 1)]))
    lines = Chunk("a.log", 0, data, 1).lines()
    events = decode(assemble(unwrap(lines, rules.formats), rules.formats), rules.formats)
    assert telling(read) == telling((event, own.match_event(event)) for event in events if isinstance(event, LogEvent))
    assert [bool(match.items) for _, [match] in telling(read)] == [number % 10 == 7 for number in range(60)]


def test_events_to_which_digits_matter_are_told_when_only_their_stamps_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = "WARN [Producer clientId=p] Connection to node {} (localhost/127.0.0.1:9092) could not be established. (o.a.k.N)"
    events = told(monkeypatch)
    data = log([refused.format(number % 2) for number in range(12)])
    assert skimmed(data) == reference(data)
    assert len(events) == 8  # read: the first of the text, one that counts, one by which digits matter, the first of a node


def test_other_zones_and_labels_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    data = log([DENIED.format(number, 200 + number) for number in range(10, 14)])
    for labels in ({}, {"timezone": "Asia/Seoul"}, {"timezone": "Asia/Seoul", "cluster": "b"}):
        assert skimmed(data, labels) == reference(data, labels)


def test_what_is_learnt_of_a_source_serves_others(monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(monkeypatch)
    data = log([DENIED.format(number, 200 + number) for number in range(10, 40)])
    # the first of a log is always read; other labels than those of a.log and b.log have to be learnt with
    for source_id, labels, count in (
        ("a.log", {"host": "h"}, 28),
        ("b.log", {"host": "g"}, 57),
        ("a.log", {"cluster": "g"}, 85),
    ):
        assert skimmed(data, labels, source_id) == reference(data, labels, source_id)
        assert len(events) == count


@pytest.mark.parametrize("field", ["labels.team", "labels", "labels.source"])
def test_what_rules_ask_of_a_source_is_not_taken_from_another(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(monkeypatch)
    denied = signature("denied", pattern("Principal = (User:.*?) is", "principal"), contains("orders", field))
    ours = replace(building.plan(denied), formats=plan().formats)
    matching = Matcher(ours)
    skimming = sight_of(matching, ours.formats)
    data = log([DENIED.format(number, 200 + number) for number in range(10, 40)])
    for source_id, team in (("orders.log", "orders"), ("b.log", "billing"), ("orders-2.log", "orders")):
        labels, read = {"team": team}, list[tuple[AnyEvent, list[Match]]]()
        scan = Whole(ours, matching, lambda: skimming, lambda event, found: read.append((event, found)))  # noqa: B023
        list(scan.read([Chunk(source_id, 0, data, 1, None, labels)]))
        assert len([found for _, found in read if found]) == (30 if team == "orders" else 0)
    assert events


@pytest.mark.parametrize(
    "event",
    [
        "WARN password=hunter{0}; Principal = User:app-{0} is Denied Operation = Describe from host = 10.0.0.1",
        "INFO ConsumerConfig values: \n\tgroup.id = g-{0}\n\tmax.poll.interval.ms = {0}\n\tclient.id = c-{0}\n",
        "ERROR é Principal = User:app-{0} is Denied Operation = Describe from host = 10.0.0.1",
    ],
)
def test_what_can_not_be_learnt_is_read(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(monkeypatch)
    data = log([event.format(number) for number in range(10, 20)])
    assert skimmed(data) == reference(data)
    assert not events


def test_more_texts_than_are_kept_cost_only_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "KEPT", 3)
    data = log([DENIED.format("x" * (number % 7), number) for number in range(100, 160)])
    assert skimmed(data) == reference(data)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["[{}] ", "{} "])
def test_every_event_of_the_samples_may_come_in_a_storm(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events, storms = told(monkeypatch), 0
    random = Random(1)
    for known in known_events():
        data = log([with_digits(known, random) for _ in range(6)], layout)
        assert skimmed(data) == reference(data), known
        storms += 1
    assert storms > 50
    assert len(events) > storms * 4 * 0.5  # the others are read, as digits matter to them


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.sampled_from(["[{}] ", "{} "]))
def test_any_storm_is_told_as_it_is_read(seed: int, layout: str) -> None:
    random = Random(seed)
    some = random.choices(known_events(), k=3)
    events = [with_digits(text, random) if random.random() < 0.8 else text for text in random.choices(some, k=30)]
    data = log(events, layout)
    assert skimmed(data) == reference(data)


@pytest.mark.parametrize("wrapper", sorted(ROWS.keys() - {"shipper", "journal iso"}))
def test_events_alike_behind_a_wrapper_are_told_too(wrapper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = told(monkeypatch)
    data = behind_wrappers(log([DENIED.format(number, 200 + number) for number in range(10, 40)]), [wrapper], Random(1))
    assert skimmed(data, {"cluster": "b", "host": "given"}) == reference(data, {"cluster": "b", "host": "given"})
    assert len(events) == 28


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32), st.sampled_from([*((row,) for row in ROWS), ("docker file", "compose")]), st.sampled_from([0, 0.05])
)
def test_any_wrapped_storm_is_told_as_it_is_read(seed: int, chain: Sequence[str], torn: float) -> None:
    random = Random(seed)
    events = [with_digits(text, random) for text in random.choices(random.choices(known_events(), k=3), k=30)]
    data = behind_wrappers(log(events), chain, random, torn)
    assert skimmed(data) == reference(data)


def behind_wrappers(data: bytes, chain: Sequence[str], random: Random, torn: float = 0.0) -> bytes:
    return "".join(f"{row}\n" for row in wrapped(data.decode().splitlines(), chain, random, torn)).encode()
