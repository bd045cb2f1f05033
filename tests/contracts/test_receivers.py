"""One table for every receiver: what each must answer to what can happen, and what none may do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from connectors import alertmanager, email, pagerduty, slack, teams, webhook
from connectors.memory import MemoryReceiver
from connectors.terminal import TerminalReceiver
from engine.cli.receiving import InspectableReceiver
from engine.model.answers import incident_value
from engine.model.diagnostics import Level
from engine.model.incidents import Evidence, Symptom
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.ports import Receiver
from tests.standins.alertmanager import AlertmanagerStandIn
from tests.standins.mail import MailStandIn
from tests.standins.pagerduty import ROUTING_KEY, PagerDutyStandIn
from tests.standins.slack import TOKEN, SlackStandIn
from tests.standins.teams import TeamsStandIn
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

HOSTILE = "<!channel> *x* `y` <https://evil|click> & \x1b[31m \u202e ${jndi:x} 데이터 " + "A" * 9000


class Kind(Struct, frozen=True):
    """A receiver of one kind, the call by which its messages arrive (empty: not by HTTP), and what stands for its service."""

    open: Callable[[Any], Receiver]
    call: str = ""
    stand_in: Callable[[], Any] = SlackStandIn


KINDS = {
    "memory": Kind(lambda _: MemoryReceiver()),
    "terminal": Kind(lambda _: TerminalReceiver(lambda _: None)),
    "slack": Kind(lambda server: slack.open_receiver("#kafka-ops", TOKEN, server.base_url), "chat.postMessage"),
    "slack-webhook": Kind(lambda server: slack.open_webhook_receiver(server.webhook_url), "services"),
    "webhook": Kind(lambda server: webhook.open_receiver(f"{server.address}/hook", incident_value, "secret"), "hook"),
    "pagerduty": Kind(lambda x: pagerduty.open_receiver(ROUTING_KEY, x.address), "enqueue", PagerDutyStandIn),
    "alertmanager": Kind(lambda x: alertmanager.open_receiver(x.address, "Bearer secret"), "alerts", AlertmanagerStandIn),
    "teams": Kind(lambda server: teams.open_receiver(server.webhook_url), "workflows", TeamsStandIn),
    "email": Kind(
        lambda server: email.open_receiver(email.SmtpServer("127.0.0.1", server.port, "none"), SENDER, [RECIPIENT]),
        stand_in=MailStandIn,
    ),
}
NETWORKED = [name for name, kind in KINDS.items() if kind.call]
SENDER, RECIPIENT = "tocsin@kafka.example", "oncall@kafka.example"


@pytest.fixture
def server(kind: str) -> Iterator[Any]:
    with KINDS[kind].stand_in() as running:
        yield running


def hostile() -> Notification:
    evidence = tuple(Evidence(f"e{n}", HOSTILE, n, AT, "\n".join([HOSTILE] * 50)) for n in range(9))
    symptoms = tuple(Symptom(f"rule-{n}", HOSTILE, n, {"topic": HOSTILE}) for n in range(50))
    step = replace(TOO_LARGE.fix[0], do=HOSTILE, run=HOSTILE, file={HOSTILE: HOSTILE})
    changed = incident(title=HOSTILE, cause=HOSTILE, fix=(step,) * 40, evidence=evidence, symptoms=symptoms, references=("x",))
    return Notification(changed, Reason.OPENED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reason", Reason)
def test_everything_that_can_be_told_is_delivered(kind: str, reason: Reason, server: Any) -> None:
    receipt = KINDS[kind].open(server).deliver(Notification(TOO_LARGE, reason, "something changed"))
    assert receipt.state is DeliveryState.DELIVERED, receipt.why


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["open", "acknowledged", "resolved", "retracted", "merged"])
def test_every_status_is_delivered(kind: str, status: str, server: Any) -> None:
    receiver = KINDS[kind].open(server)
    changed = incident(status=status, merged_into="inc-1", first_seen=None, fix=(), evidence=(), symptoms=(), verify="")
    assert receiver.deliver(Notification(changed, Reason.UPDATED, "now")).state is DeliveryState.DELIVERED


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_and_huge_text_is_delivered(kind: str, server: Any) -> None:
    receipt = KINDS[kind].open(server).deliver(hostile())
    assert receipt.state is DeliveryState.DELIVERED, receipt.why


@pytest.mark.parametrize("kind", KINDS)
def test_marks_survive_the_store_and_a_second_telling_uses_them(kind: str, server: Any) -> None:
    receiver = KINDS[kind].open(server)
    first = receiver.deliver(Notification(TOO_LARGE, Reason.OPENED))
    marks = json.loads(json.dumps(dict(first.marks or {})))
    again = receiver.deliver(Notification(incident(status="resolved"), Reason.RESOLVED, "resolved", marks))
    assert again.state is DeliveryState.DELIVERED
    assert dict(again.marks or {}).get("ts") == marks.get("ts")


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"memory", "terminal"}))
def test_a_receiver_is_tried_without_sending(kind: str) -> None:
    with KINDS[kind].stand_in() as running:
        receiver = KINDS[kind].open(running)
        assert isinstance(receiver, InspectableReceiver)
        assert [inspection.level for inspection in receiver.inspect() if inspection.level is Level.ERROR] == []
    assert [inspection.level for inspection in receiver.inspect()][:1] == [Level.ERROR], "nobody is there any more"


# behaviour: state, unsure, after_s
FAILURES = {
    "ratelimited:7": (DeliveryState.RETRY_LATER, False, 7.0),
    "status:500": (DeliveryState.RETRY_LATER, True, None),
    "status:503": (DeliveryState.RETRY_LATER, True, None),
    "drop": (DeliveryState.RETRY_LATER, True, None),
    "refuse": (DeliveryState.RETRY_LATER, True, None),
    "channel_not_found": (DeliveryState.REJECTED, False, None),
    "invalid_auth": (DeliveryState.REJECTED, False, None),
    "page:200": (DeliveryState.RETRY_LATER, True, None),
    "page:403": (DeliveryState.RETRY_LATER, False, None),
    "page:404": (DeliveryState.RETRY_LATER, False, None),
    "page:407": (DeliveryState.RETRY_LATER, False, None),
    "page:502": (DeliveryState.RETRY_LATER, True, None),
    "huge": (DeliveryState.RETRY_LATER, True, None),
    "drip": (DeliveryState.RETRY_LATER, True, None),
}
# a generic webhook has no errors of its own that could be told from a proxy's, and no body that says "delivered"
OF_ANY_WEBHOOK = {
    "channel_not_found": (DeliveryState.RETRY_LATER, False, None),
    "invalid_auth": (DeliveryState.RETRY_LATER, False, None),
    "page:200": (DeliveryState.DELIVERED, False, None),
    "huge": (DeliveryState.DELIVERED, False, None),
}
# none of these has errors of its own by another status than 400, which its own tests have
OF_A_SERVICE = {word: OF_ANY_WEBHOOK[word] for word in ("channel_not_found", "invalid_auth")}
# Alertmanager and a workflow answer with an empty body
OF_AN_EMPTY_ANSWER = {**OF_A_SERVICE, "huge": (DeliveryState.DELIVERED, False, None)}
# what an incoming webhook of Slack answers is text, of which `ok` is not the only one that other programs say
OF_SLACK_WEBHOOK = {"huge": (DeliveryState.DELIVERED, False, None)}
SPECIAL = {
    "webhook": OF_ANY_WEBHOOK,
    "slack-webhook": OF_SLACK_WEBHOOK,
    "pagerduty": OF_A_SERVICE,
    "alertmanager": OF_AN_EMPTY_ANSWER,
    "teams": OF_AN_EMPTY_ANSWER,
}


@pytest.mark.parametrize("behaviour", FAILURES)
@pytest.mark.parametrize("kind", NETWORKED)
def test_every_failure_is_a_receipt(kind: str, behaviour: str, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.exchange.exchange.__defaults__", (15.0, 0.5))
    server.script(KINDS[kind].call, behaviour)
    receipt = KINDS[kind].open(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.unsure, receipt.after_s) == SPECIAL.get(kind, {}).get(behaviour, FAILURES[behaviour])
    assert receipt.why or receipt.state is DeliveryState.DELIVERED
    assert len(receipt.why) < 400
    assert "secret" not in receipt.why
    assert TOKEN not in receipt.why and ROUTING_KEY not in receipt.why
    assert server.count(KINDS[kind].call) == 1, "nothing is retried inside a delivery"


@pytest.mark.parametrize("kind", NETWORKED)
def test_a_redirect_is_not_followed_wherever_it_leads_and_said(kind: str, server: Any) -> None:
    with SlackStandIn() as other:
        server.script(KINDS[kind].call, f"redirect:{other.address}/api/chat.postMessage?secret=1")
        receipt = KINDS[kind].open(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
        assert (other.calls, other.hooks) == ([], [])
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, False)
    assert "redirect to 127.0.0.1 (status 302)" in receipt.why
    assert "not followed" in receipt.why
    assert "secret" not in receipt.why


@pytest.mark.parametrize("kind", NETWORKED)
def test_a_proxy_s_page_is_quoted_without_its_markup(kind: str, server: Any) -> None:
    server.script(KINDS[kind].call, "page:403")
    receipt = KINDS[kind].open(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert "403: Access denied by the proxy." in receipt.why
    assert "<" not in receipt.why


@pytest.mark.parametrize("kind", [*NETWORKED, "email"])
def test_a_closed_port_is_a_failure_that_is_sure(kind: str) -> None:
    with KINDS[kind].stand_in() as server:
        receiver = KINDS[kind].open(server)
    receipt = receiver.deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, False)


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_not_in_what_is_printed(kind: str, server: Any) -> None:
    printed = repr(KINDS[kind].open(server))
    assert "secret" not in printed and ROUTING_KEY not in printed


def test_a_terminal_that_cannot_be_written_to_is_told_again_later() -> None:
    def full(_: Notification) -> None:
        raise OSError(28, "No space left on device")

    receipt = TerminalReceiver(full).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert receipt == Receipt(DeliveryState.RETRY_LATER, "the terminal cannot be written to (No space left on device)")


def test_receipts_of_a_test_receiver_can_be_scripted() -> None:
    receiver = MemoryReceiver(answers=[Receipt(DeliveryState.REJECTED, "no")])
    assert receiver.deliver(Notification(TOO_LARGE, Reason.OPENED)).why == "no"
    assert receiver.notifications == []
    assert (
        receiver.deliver(Notification(TOO_LARGE, Reason.OPENED, unsure_since=datetime.now(UTC))).state
        is DeliveryState.DELIVERED
    )
