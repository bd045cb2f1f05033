"""A Slack app is tried against the stand-in, without a message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.slack import open_receiver
from engine.model.diagnostics import Level
from tests.standins.slack import TOKEN, SlackStandIn


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn() as server:
        yield server


def inspected(slack: SlackStandIn, channel: str, token: str = TOKEN) -> list[tuple[Level | None, str]]:
    inspections = open_receiver(channel, token, slack.base_url).inspect()
    assert not slack.messages
    return [(inspection.level, inspection.sentence) for inspection in inspections]


@pytest.mark.parametrize("channel", ["#kafka-ops", "C00000001", "#2339_데이터_모니터링"])
def test_an_app_that_may_send_is_all_right(slack: SlackStandIn, channel: str) -> None:
    assert inspected(slack, channel) == [
        (None, "the token is valid: tocsin of Stand-in"),
        (None, f"the channel {channel} is there, and the app may write to it"),
    ]


def test_a_wrong_token_is_the_only_finding(slack: SlackStandIn) -> None:
    assert inspected(slack, "#kafka-ops", "xoxb-wrong") == [
        (Level.ERROR, "Slack says invalid_auth; check the token of the receiver")
    ]


def test_missing_scopes_and_a_channel_that_cannot_be_listed(slack: SlackStandIn) -> None:
    slack.granted = ["groups:read", "groups:history"]
    levels = inspected(slack, "#nowhere")
    assert levels[1] == (Level.ERROR, "the app has no scope chat:write: it can send nothing")
    assert levels[2][0] is Level.WARNING
    assert levels[3] == (
        Level.WARNING,
        "the channel #nowhere was not found; without the scope channels:read not all are listed",
    )


def test_a_channel_with_a_typing_error_is_named(slack: SlackStandIn) -> None:
    assert inspected(slack, "#kafka-opps")[1] == (
        Level.ERROR,
        "there is no channel #kafka-opps that the app can see; did you mean #kafka-ops?",
    )
    assert inspected(slack, "C0NOWHERE")[1][0] is Level.ERROR


@pytest.mark.parametrize("channel", ["#kafka-ops", "C00000001"])
def test_an_app_that_is_not_in_the_channel_or_whose_channel_is_archived(slack: SlackStandIn, channel: str) -> None:
    slack.strange = {"kafka-ops"}
    assert inspected(slack, channel)[1] == (Level.ERROR, f"the app is not in the channel {channel}: invite it there")
    slack.granted.append("chat:write.public")
    assert inspected(slack, channel)[1][0] is None
    slack.archived = {"kafka-ops"}
    assert inspected(slack, channel)[1] == (Level.ERROR, f"the channel {channel} is archived")


@pytest.mark.parametrize(
    "behaviour", ["status:500", "page:403", "refuse", "ratelimited:3", "shapeless", "redirect:http://x.example/"]
)
def test_whatever_comes_instead_of_an_answer_is_a_sentence(slack: SlackStandIn, behaviour: str) -> None:
    slack.script("auth.test", behaviour)
    ((level, sentence),) = inspected(slack, "#kafka-ops")
    assert level is Level.ERROR
    assert "Slack" in sentence
