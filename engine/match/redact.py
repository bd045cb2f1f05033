"""Redaction of secrets in evidence and captures, right after matching: what is cut here is never stored or sent.

Passwords and secret keys by their names, tokens by their shapes, JAAS lines whole, credentials in URLs, e-mail addresses.
Every expression runs in linear time. Numbers, topics, hosts and principals stay: they are what a diagnosis is made of.
"""

from __future__ import annotations

from collections.abc import Mapping

import re2

from engine.match.checks import expression
from engine.match.fields import encoded
from engine.model.matches import EVIDENCE_BYTES, Value

MASK = "[redacted]"
MAIL_MASK = "[e-mail]"

_HINT = expression(
    r"passw|passphrase|pwd|secret|credential|token|api.?key|access.?key|private.?key|jaas|loginmodule|authorization|bearer"
    r"|://[^\s/@]*@|@[a-z0-9-]+\.|akia|eyj|xox|ghp_|-----begin",
    nocase=True,
)
_NAMES = r"[\w.-]*(?:password|passwd|passphrase|pwd|secret|credentials?|(?:access|private|secret)[._-]?key)[\w.-]*"
_ASSIGN = r"""["']?\s*(?:=>|[=:])\s*"""
_VALUE = r"""(?:\[[a-z]+\]|"[^"\n]*"|'[^'\n]*'|[^\s,;"'}\])]+)"""
# Kafka prints what it hides as [hidden]; an unset secret prints as null: both are worth reading
_HARMLESS = frozenset(("null", "[hidden]", "none", '""', "''", "true", "false", MASK))

_JAAS = expression(
    r"(sasl[._]jaas[._]config\S*?\s*[=:]\s*|\w*LoginModule\s+(?:required|requisite|sufficient|optional)\b)[^;\n]*", nocase=True
)
_NAMED = expression(rf"({_NAMES}{_ASSIGN})({_VALUE})", nocase=True)
_BEFORE = 12  # characters before a name that may say that it is none
_SPEAKING = expression(r"(?:provider|exception|error|\b(?:invalid|bad|wrong) credentials)\s*:\s*$", nocase=True)
_TOKEN = expression(rf"([\w.-]*(?:token|api[._-]?key)[\w-]*{_ASSIGN})({_VALUE})", nocase=True)
_HEADER = expression(r"(authorization\W{1,4}(?:basic|bearer|token)\s+|\bbearer\s+)([a-z0-9._~+/=-]{8,})", nocase=True)
_SHAPES = expression(
    r"\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bxox[abeoprs]-[\w-]{8,}|\bgh[opsu]_\w{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
_URL = expression(r"([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]*@", nocase=True)
# a quorum voter `1@host.example.com:9093` and a Kerberos principal `kafka/host@EXAMPLE.COM` have the shape of an address
_MAIL = expression(r"([a-z0-9._%+-]+)@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b", nocase=True)


def redact(text: str) -> str:
    """Return `text` with every secret replaced by a visible mask; the same object when there is none."""
    if _HINT.search(encoded(text)) is None:
        return text
    for secret, mask in _MASKS:
        text = str(secret.sub(mask, text))
    return text


def redact_captures(captures: Mapping[str, Value], text: str, redacted: str) -> Mapping[str, Value]:
    """Return `captures` without what redaction took out of `text`: a captured secret has lost the name that gave it away."""
    if text is redacted:
        return captures
    return {name: _clean(value, text, redacted) for name, value in captures.items()}


def cut(text: str) -> str:
    """Return the longest beginning of `text` that fits EVIDENCE_BYTES of UTF-8, ending at a character border."""
    if len(text) * 4 <= EVIDENCE_BYTES:
        return text
    data = encoded(text)
    return text if len(data) <= EVIDENCE_BYTES else data[:EVIDENCE_BYTES].decode("utf-8", "ignore")


def _clean(value: Value, text: str, redacted: str) -> Value:
    if not isinstance(value, str):
        return value
    if value in text and value not in redacted:
        masked = redact(value)
        return masked if masked != value else MASK
    return redact(value)


def _after_name(hit: re2._Match) -> str:
    return f"{hit.group(1)}{MASK}"


def _jaas(hit: re2._Match) -> str:
    return f"{hit.group(1).rstrip()} {MASK}"


def _named(hit: re2._Match) -> str:
    """Mask a value behind a name, but neither what an unset secret prints nor what a class or a refusal says (`invalid
    credentials: ...`)."""
    said = _SPEAKING.search(hit.string[max(0, hit.start() - _BEFORE) : hit.end(1)]) is not None
    return str(hit.group(0)) if said or hit.group(2).lower() in _HARMLESS else _after_name(hit)


def _token(hit: re2._Match) -> str:
    """Mask a token or an API key, but neither a setting (`max.token.lifetime = 86400000`) nor the name of a Kafka request
    (`apiKey=OFFSET_COMMIT`)."""
    value = hit.group(2).strip("\"'")
    harmless = value.lower() in _HARMLESS or value.isdigit() or len(value) < 8 or value.replace("_", "").isupper()
    return str(hit.group(0)) if harmless else _after_name(hit)


def _url(hit: re2._Match) -> str:
    return f"{hit.group(1)}{MASK}@"


def _mail(hit: re2._Match) -> str:
    realm = hit.group(0).rpartition("@")[2]
    principal = realm.isupper() or hit.string[max(0, hit.start() - 1) : hit.start()] == "/"
    return str(hit.group(0)) if principal or hit.group(1).isdigit() else MAIL_MASK


# in this order: whole lines, values by their names, values by their shapes, parts of addresses
_MASKS = (
    (_JAAS, _jaas),
    (_NAMED, _named),
    (_TOKEN, _token),
    (_HEADER, _after_name),
    (_SHAPES, MASK),
    (_URL, _url),
    (_MAIL, _mail),
)
