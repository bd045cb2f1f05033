"""A printed configuration says the settings that fixes change, and nothing secret."""

from __future__ import annotations

import pytest

from engine.match import Matcher
from engine.model.matches import Match
from tests.building import event, plan, setting, signature

PLAN = plan(signature("the-rule", runbook=setting("client", "max.request.size", "sasl.jaas.config", "acks")))
NAMES = "\tacks = -1\n\tclient.id = p\n\tmax.request.size = 1048576\n\tsasl.jaas.config = [hidden]\n\tssl.key = null\n"
DUMP = f"[2023-02-03 02:04:02,285] INFO ProducerConfig values: \n{NAMES} (org.apache.kafka.clients.producer.ProducerConfig:370)"


def said(text: str, message: str = "ProducerConfig values:") -> list[Match]:
    return Matcher(PLAN).match_event(event(text, message=message))


def test_of_a_configuration_what_fixes_change_and_whose_it_is() -> None:
    (found,) = said(DUMP)
    assert found.rule_id == "config:ProducerConfig"
    assert found.captures == {"acks": "-1", "client.id": "p", "max.request.size": "1048576"}


@pytest.mark.parametrize("message", ["||  ProducerConfig values: ", "[cdc|task-0] ProducerConfig values:"])
def test_what_a_layout_puts_in_front_does_not_matter(message: str) -> None:
    assert len(said(DUMP, message)) == 1


@pytest.mark.parametrize("message", ["MyProducerConfig values:", "ProducerConfig values: none", "the old ProducerConfig"])
def test_what_only_mentions_one_is_none(message: str) -> None:
    assert said(DUMP, message) == []


def test_a_plan_whose_fixes_set_nothing_reads_none() -> None:
    assert Matcher(plan(signature("the-rule"))).match_event(event(DUMP, message="ProducerConfig values:")) == []


def test_the_prefilter_finds_them() -> None:
    assert Matcher(PLAN).may_match(DUMP.encode())
