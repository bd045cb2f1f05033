"""E-mail as a receiver, by SMTP: a message for each notification, as text and HTML; those of one incident are one thread.

Every message refers to one id that derives from the incident, so that they are a thread whichever of them arrive; the subject
of a thread never changes, as some clients need that too. A message that is sent again after an unknown outcome has the id of
the first attempt, by which many servers and clients recognise it.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from engine.errors import UsageError
from engine.exchange import LONGEST_S, SILENT_S
from engine.model.inspections import Inspection, fault
from engine.model.links import Link
from engine.model.notifications import DeliveryState, Notification, Receipt
from engine.model.outlines import Passage, fitting, headline, outline, plain
from engine.model.visible import visible
from engine.model.words import Words
from engine.posting import failed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

__all__ = ["EmailReceiver", "SmtpServer", "open_receiver"]

_SUBJECT, _NUMBER = "subject", "messages"  # the marks: the subject of the thread, and how many messages it has
_MOST_SUBJECT, _MOST_CHARACTERS = 180, 100_000  # the second: of all passages
_POLICY = SMTP.clone(max_line_length=200, cte_type="7bit")  # a subject stays on one line; any server takes 7 bits
_AGAIN_S = 0.5  # between two attempts to cut off a client: it may have no connection yet
_URGENT = frozenset(("critical", "high"))
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class SmtpServer(Struct, frozen=True):
    """A mail server. `tls`: starttls, tls (from the first byte) or none; `user` may be empty."""

    host: str
    port: int
    tls: str = "starttls"
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"SmtpServer({self.host}:{self.port}, {self.tls})"  # without the password


class EmailReceiver(Struct, frozen=True):
    """The mailboxes `recipients`, in one message from `sender`."""

    server: SmtpServer
    sender: str
    recipients: tuple[str, ...]
    edits: ClassVar[bool] = False  # mail cannot be edited
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = True  # people read it

    @property
    def rate_limit_key(self) -> str:
        """The server: a flood of mail is worse than one message about many incidents."""
        return f"email:{self.server.host}:{self.server.port}"

    def deliver(self, notification: Notification) -> Receipt:
        """Send one message. Recipients that the server refuses are named; it is rejected when it refuses all of them."""
        marks = notification.marks
        message = email_message(notification, self.sender, self.recipients)
        conversation = _Conversation()
        try:
            refused = self._send(message, conversation)
        except smtplib.SMTPException as error:
            return _refusal(error, conversation)
        except (OSError, ValueError) as error:
            receipt = failed(error, "the mail server")
            return Receipt(receipt.state, receipt.why, unsure=conversation.has_data)
        why = f"the mail server refuses {', '.join(sorted(refused))}" if refused else ""
        subject, number = marks.get(_SUBJECT) or str(message["Subject"]), int(marks.get(_NUMBER, "0")) + 1
        return Receipt(DeliveryState.DELIVERED, why, marks={_SUBJECT: subject, _NUMBER: str(number)})

    def inspect(self) -> list[Inspection]:
        """Try whether the mail server is reached and takes the login; nothing is sent."""
        try:
            with _connected(self.server) as client:
                if self.server.user:
                    client.login(self.server.user, self.server.password)
        except smtplib.SMTPException as error:
            return [fault(_refusal(error, _Conversation()).why)]
        except (OSError, ValueError) as error:
            return [fault(failed(error, "the mail server").why)]
        return [Inspection("the mail server answers; nothing was sent")]

    def _send(self, message: EmailMessage, conversation: _Conversation) -> dict[str, tuple[int, bytes]]:
        with _connected(self.server) as client:
            if self.server.user:
                client.login(self.server.user, self.server.password)
            client.conversation = conversation
            return client.send_message(message, self.sender, self.recipients)


def open_receiver(server: SmtpServer, sender: str, recipients: Sequence[str]) -> EmailReceiver:
    """Return the receiver of `recipients`. Raises UsageError when a password would be sent unencrypted."""
    if server.user and server.tls == "none" and server.host not in _LOOPBACK:
        raise UsageError("tls: none: a password is sent by an encrypted connection, or to this machine only")
    return EmailReceiver(server, sender, tuple(recipients))


def email_message(notification: Notification, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """Return the message of a notification; its marks say whether it is the first of its thread."""
    incident, marks = notification.incident, notification.marks
    message = EmailMessage(_POLICY)
    message["From"], message["To"] = sender, ", ".join(recipients)
    subject = visible(f"[{incident.severity}] {incident.title}")[:_MOST_SUBJECT]
    message["Subject"] = f"Re: {marks[_SUBJECT]}" if _SUBJECT in marks else subject
    message["Date"] = format_datetime(datetime.now(UTC))
    domain = parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    thread = _word(incident.id)
    number = marks.get(_NUMBER, "0")
    message["Message-ID"] = f"<{thread}.{number}.{incident.edition}.{notification.reason.value}@{domain}>"
    message["In-Reply-To"] = message["References"] = f"<{thread}@{domain}>"
    message["Auto-Submitted"], message["X-Auto-Response-Suppress"] = "auto-generated", "All"
    if incident.severity in _URGENT and incident.status == "open":
        message["Importance"] = "high"
    words = notification.words
    title, passages = headline(incident, words), fitting(outline(notification), _MOST_CHARACTERS, words)
    links = "\n".join(f"{words(link.title)}: {link.url}" for link in notification.links)
    message.set_content("\n\n".join(part for part in (title, plain(passages), links, _footnote(notification)) if part) + "\n")
    message.add_alternative(_html(notification, title, passages), subtype="html")
    return message


class _Conversation:
    """How far a conversation has come. `has_data`: the server may have taken the message."""

    has_data = False


class _Smtp(smtplib.SMTP):
    """The client of the standard library, which notes when it sends the message itself, and which is cut off LONGEST_S after it
    began to connect."""

    conversation = _Conversation()
    _over: threading.Event | None = None

    def connect(self, host: str = "localhost", port: int = 0, source_address: Any = None) -> tuple[int, bytes]:
        self._over = threading.Event()
        threading.Thread(target=self._limit, args=(self._over, LONGEST_S), name="SMTP limit", daemon=True).start()
        try:
            return super().connect(host, port, source_address)
        except BaseException:
            self._over.set()  # the caller never gets the client
            raise

    def close(self) -> None:
        if self._over is not None:
            self._over.set()
        super().close()

    def data(self, msg: Buffer | str) -> tuple[int, bytes]:
        self.conversation.has_data = True
        answer = super().data(msg)
        self.conversation.has_data = False  # there is an answer
        return answer

    def _limit(self, over: threading.Event, wait_s: float) -> None:
        while not over.wait(wait_s):
            with suppress(OSError):
                if (connection := self.sock) is not None:
                    connection.shutdown(socket.SHUT_RDWR)
            wait_s = _AGAIN_S


class _SmtpOverTls(_Smtp, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""


@contextmanager
def _connected(server: SmtpServer) -> Iterator[_Smtp]:
    """Give a client that is connected, and encrypted if `server` says so."""
    if server.tls == "tls":
        client: _Smtp = _SmtpOverTls(server.host, server.port, timeout=SILENT_S, context=ssl.create_default_context())
    else:
        client = _Smtp(server.host, server.port, timeout=SILENT_S)
    try:
        if server.tls == "starttls":
            client.starttls(context=ssl.create_default_context())
        yield client
        with suppress(smtplib.SMTPException, OSError):
            client.quit()
    finally:
        client.close()


def _refusal(error: smtplib.SMTPException, conversation: _Conversation) -> Receipt:
    """Return the receipt of an answer of the server: 4xx is temporary, 5xx is final."""
    code: int
    text: bytes | str
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = max(error.recipients.values(), key=lambda answer: answer[0] < 500)  # a temporary one, if there is one
    elif isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, error.smtp_error
    elif isinstance(error, smtplib.SMTPNotSupportedError):
        return Receipt(DeliveryState.REJECTED, f"the mail server cannot do what is configured: {error}")
    else:
        return Receipt(DeliveryState.RETRY_LATER, f"the mail server: {error}", unsure=conversation.has_data)
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    is_final = 500 <= code < 600
    why = f"the mail server answers {code}: {words}"
    return Receipt(DeliveryState.REJECTED if is_final else DeliveryState.RETRY_LATER, why)


def _word(id_: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", id_)


def _footnote(notification: Notification) -> str:
    return visible(f"{notification.incident.id} · {notification.incident.rule} · {notification.reason.value}")


def _html(notification: Notification, title: str, passages: Sequence[Passage]) -> str:
    parts = [f"<h2 style='font-size:18px'>{escape(title)}</h2>"]
    parts += [_passage(passage) for passage in passages]
    parts += (
        [f"<p>{' · '.join(_anchor(link, notification.words) for link in notification.links)}</p>"] if notification.links else []
    )
    parts.append(f"<p style='color:#6b7280;font-size:12px'>{escape(_footnote(notification))}</p>")
    body = "\n".join(parts)
    return f"<html><body style='font-family:sans-serif;font-size:14px;max-width:46em'>\n{body}\n</body></html>\n"


def _passage(passage: Passage) -> str:
    style = "background:#f3f4f6;padding:8px;white-space:pre-wrap;word-break:break-word"
    code = f"<pre style='{style}'>{escape(passage.code)}</pre>" if passage.code else ""
    return f"<p><b>{escape(passage.heading)}</b>&ensp;{escape(passage.text)}</p>{code}"


def _anchor(link: Link, words: Words) -> str:
    return f"<a href='{escape(link.url, quote=True)}'>{escape(words(link.title))}</a>"
