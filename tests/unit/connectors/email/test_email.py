"""E-mail: threads, encryption, and what a mail server may answer; against a real SMTP server."""

from __future__ import annotations

import select
import smtplib
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from connectors.email import EmailReceiver, SmtpServer, email_message, open_receiver
from engine.errors import UsageError
from engine.model.links import Link
from engine.model.notifications import DeliveryState, Notification, Reason
from tests.standins.mail import PASSWORD, USER, MailStandIn, made_certificate
from tests.unit.cli.incidents import TOO_LARGE, incident

SENDER, RECIPIENT, OTHER = "Tocsin <tocsin@kafka.example>", "oncall@kafka.example", "ops@kafka.example"


@pytest.fixture
def server() -> Iterator[MailStandIn]:
    with MailStandIn() as running:
        yield running


def receiver(server: MailStandIn, **options: Any) -> EmailReceiver:
    settings = {"tls": "none", **options}
    return open_receiver(SmtpServer("127.0.0.1", server.port, **settings), SENDER, [RECIPIENT, OTHER])


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_what_a_message_holds(server: MailStandIn) -> None:
    links = (Link("incident", "https://tocsin.example/incidents/inc-1?a=1&b=2"),)
    receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED, links=links))
    (message,) = server.messages
    assert message["From"] == SENDER and message["To"] == f"{RECIPIENT}, {OTHER}"
    assert message["Subject"] == "[critical] A Connect task produced a record larger than max.request.size"
    assert message["Auto-Submitted"] == "auto-generated" and message["Importance"] == "high"
    text, html = part(message, "plain"), part(message, "html")
    assert "Cause: cdc-source tried to send a 1.07 MiB record" in text
    assert "  producer.max.request.size=2097152" in text
    assert "Incident page: https://tocsin.example/incidents/inc-1?a=1&b=2" in text
    assert "<a href='https://tocsin.example/incidents/inc-1?a=1&amp;b=2'>Incident page</a>" in html


def test_messages_of_an_incident_are_a_thread(server: MailStandIn) -> None:
    told = [("opened", "critical"), ("escalated", "high"), ("repeated", "high"), ("repeated", "high"), ("resolved", "high")]
    marks: Any = {}
    for reason, severity in told:
        receipt = receiver(server).deliver(Notification(incident(severity=severity), Reason(reason), "", marks))
        marks = receipt.marks
    receiver(server).deliver(Notification(incident(id="inc-2"), Reason.OPENED))
    *thread, other = server.messages
    assert {message["References"] for message in thread} == {f"<{TOO_LARGE.id}@kafka.example>"} != {other["References"]}
    assert len({message["Message-ID"] for message in server.messages}) == 6, "repetitions are messages of their own"
    first, *later = [message["Subject"] for message in thread]
    assert set(later) == {f"Re: {first}"}, "some clients end a thread where the subject changes"


def test_an_attempt_that_is_made_again_has_the_same_id(server: MailStandIn) -> None:
    notification = Notification(TOO_LARGE, Reason.OPENED)
    server.script("DATA", "drop")
    receipt = receiver(server).deliver(notification)
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, True)
    assert receiver(server).deliver(notification).state is DeliveryState.DELIVERED
    assert len({message["Message-ID"] for message in server.messages}) == 1


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    ("answer", "state"),
    [("451 try later", DeliveryState.RETRY_LATER), ("550 no such user", DeliveryState.REJECTED)],
)
def test_what_the_server_answers(server: MailStandIn, command: str, answer: str, state: DeliveryState) -> None:
    server.script(command, answer, answer)
    receipt = receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.unsure) == (state, False)
    assert receipt.why == f"the mail server answers {answer.replace(' ', ': ', 1)}"
    assert server.messages == []


def test_a_recipient_that_is_refused_is_named_and_the_others_get_it(server: MailStandIn) -> None:
    server.script("RCPT", "550 no such user")
    receipt = receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.why) == (DeliveryState.DELIVERED, f"the mail server refuses {RECIPIENT}")
    assert len(server.messages) == 1


def test_when_all_are_refused_a_temporary_reason_counts(server: MailStandIn) -> None:
    server.script("RCPT", "550 no such user", "450 busy")
    receipt = receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.why) == (DeliveryState.RETRY_LATER, "the mail server answers 450: busy")


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_password_goes_over_an_encrypted_connection(tls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = made_certificate(tmp_path)
    with MailStandIn(tls, certificate) as server:
        own = {"tls": tls, "user": USER, "password": PASSWORD}
        unknown = receiver(server, **own).deliver(Notification(TOO_LARGE, Reason.OPENED))
        assert (unknown.state, unknown.unsure) == (DeliveryState.RETRY_LATER, False)
        assert "SSLCertVerificationError" in unknown.why
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        wrong = receiver(server, **{**own, "password": "wrong"}).deliver(Notification(TOO_LARGE, Reason.OPENED))
        assert wrong.state is DeliveryState.REJECTED and "535" in wrong.why
        assert receiver(server, **own).deliver(Notification(TOO_LARGE, Reason.OPENED)).state is DeliveryState.DELIVERED
        assert len(server.messages) == 1
        assert server.logins[-1].endswith("right")
        assert PASSWORD not in repr(receiver(server, **own))


def test_a_server_without_encryption_gets_no_password_and_one_without_starttls_no_mail(server: MailStandIn) -> None:
    with pytest.raises(UsageError, match="a password is sent by an encrypted connection"):
        open_receiver(SmtpServer("mail.example", 25, "none", USER, PASSWORD), SENDER, [RECIPIENT])
    receipt = receiver(server, tls="starttls").deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert receipt.state is DeliveryState.REJECTED
    assert "cannot do what is configured: STARTTLS" in receipt.why
    assert server.messages == []


def test_a_server_that_never_answers_is_cut_off(server: MailStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(client: smtplib.SMTP, name: str = "") -> tuple[int, bytes]:
        return client.getreply()  # which never comes

    monkeypatch.setattr("connectors.email.LONGEST_S", 0.2)
    monkeypatch.setattr(smtplib.SMTP, "ehlo", hang)
    receipt = receiver(server).deliver(Notification(TOO_LARGE, Reason.OPENED))
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, False)


def test_the_limit_counts_from_the_first_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.email.LONGEST_S", 0.2)
    pieces = 0

    def greet(listener: socket.socket) -> None:
        """Send a greeting of 10 s, a byte now and then."""
        nonlocal pieces
        connection = listener.accept()[0]
        with connection, suppress(OSError):
            while pieces < 200 and not select.select([connection], [], [], 0.05)[0]:
                connection.sendall(b"2")
                pieces += 1

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet, args=(listener,))
        thread.start()
        server = SmtpServer("127.0.0.1", listener.getsockname()[1], "none")
        receipt = EmailReceiver(server, SENDER, (RECIPIENT,)).deliver(Notification(TOO_LARGE, Reason.OPENED))
        thread.join()
    assert (receipt.state, receipt.unsure) == (DeliveryState.RETRY_LATER, False)
    assert pieces < 200


def test_text_of_logs_makes_no_header_and_no_markup() -> None:
    hostile = "a\r\nBcc: evil@evil.example\r\n\r\n<script>alert(1)</script>"
    message = email_message(
        Notification(incident(title=hostile, cause=hostile, id="x>\r\ny"), Reason.OPENED), SENDER, [RECIPIENT]
    )
    assert message["Bcc"] is None
    assert "<script>" not in part(message, "html")
    assert message["Message-ID"] == "<x---y.0.2.opened@kafka.example>"
    assert all(line.isascii() and len(line) < 999 for line in message.as_bytes().decode().split("\r\n"))
