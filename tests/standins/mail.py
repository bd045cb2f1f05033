"""A stand-in for a mail server: a real SMTP server on loopback (aiosmtpd), with STARTTLS, TLS and passwords where asked for."""

from __future__ import annotations

import ssl
import subprocess
from collections import defaultdict
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "tocsin", "correct-horse-9f2"


class MailStandIn:
    """The server. `script` the answers of a command (`MAIL`, `RCPT`, `DATA`), as `451 later` or `550 no`; `drop`: take it, and
    cut the connection instead of answering.

    Args:
        certificate: a PEM file with key and certificate, for STARTTLS or, with `tls` = "tls", from the first byte.
    """

    def __init__(self, tls: str = "none", certificate: Path | None = None) -> None:
        self.messages: list[EmailMessage] = []
        self.logins: list[str] = []
        self._scripts: defaultdict[str, list[str]] = defaultdict(list)
        options: dict[str, Any] = {}
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            options = {"ssl_context": context} if tls == "tls" else {"tls_context": context, "require_starttls": True}
            options |= {"authenticator": self._authenticate, "auth_required": False, "auth_require_tls": tls == "starttls"}
        self._controller = _AnyPort(self, hostname="127.0.0.1", port=0, **options)

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    @property
    def port(self) -> int:
        return int(self._controller.port)

    def script(self, command: str, *answers: str) -> None:
        """Say how the next commands are answered; after these, all are accepted."""
        self._scripts[command].extend(answers)

    async def handle_MAIL(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:
        envelope.mail_from = address
        return self._scripted("MAIL") or "250 OK"

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:
        if answer := self._scripted("RCPT"):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        answer = self._scripted("DATA")
        if answer in (None, "drop"):
            self.messages.append(message_from_bytes(envelope.content, EmailMessage, policy=default))  # type: ignore[arg-type]
        if answer == "drop":
            server.transport.abort()
        return answer if answer not in (None, "drop") else "250 OK"

    def _authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        self.logins.append(f"{mechanism} {'right' if is_right else 'wrong'}")
        return AuthResult(success=is_right, handled=False)

    def _scripted(self, command: str) -> str | None:
        return self._scripts[command].pop(0) if self._scripts[command] else None


class _AnyPort(Controller):
    """A controller that waits for its server at the port that the system chose."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def made_certificate(folder: Path) -> Path:
    """Make a key with a certificate of its own for 127.0.0.1, in one PEM file."""
    path = folder / "mail.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(path)]
    command = ["openssl", "req", "-x509", *key, "-days", "2", *names, "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "cert.pem").read_text())
    return path
