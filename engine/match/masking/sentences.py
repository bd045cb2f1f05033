"""Finds secrets in sentences: `password for user x is ...`, a value before its name, a value quoted in a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch, names
from engine.match.masking.values import BEGINNING, QUOTE, NumberedLines, closing_quote, token_end

_WHO = r"user|account|login|username|client|the|this|for|of|partition|topic|group"
_SPOKEN = expression(
    rf"({names.NAME})(?:{QUOTE})?(?:[ \t]+(?:for|für|of|von|para|pour|del|di|для|пользователя)[ \t]+"
    rf"(?:(?:user|account|login)[ \t]+)?(?:{QUOTE})?([^\s:=,;\"'`]{{1,64}})(?:{QUOTE})?|"
    r"[ \t]+(?:errata|errada|incorrecta?|inválida|invalide?|falsch|ungültig|wrong)|[ \t]*(?:错误|錯誤|不正确|不正確|오류))?"
    r"(?:[ \t]+(?:(?:is|was|has[ \t]+been)[ \t]+)?(?:set|changed|reset)[ \t]+to\b:?|"
    r"(?:[ \t]+(?:provided|supplied|received|entered|specified|generated))?"
    rf"(?:[ \t]+(?:is|was|ist|es|est|lautet|é|равен)[ \t]|[ \t]*[:=]))[ \t]*({QUOTE})?",
    nocase=True,
)
_WHOSE = expression(rf"(?:{_WHO})", nocase=True)
_ELAPSED = expression(
    rf"\btoken[ \t]+({QUOTE})?([\w.\-]{{8,}})(?:{QUOTE})?[ \t]+(?:has[ \t]+|is[ \t]+|was[ \t]+)?(?:been[ \t]+)?"
    r"(?:expired|revoked|rejected|invalid|not[ \t]+valid)\b",
    nocase=True,
)
_PAIR = expression(r"\b(?:credentials?|login)[ \t]+[\"'\[(]?([^\s:/\"'\[(]+:[^\s:/\"'\])]{4,})", nocase=True)
# Kafka's ConfigException: `Invalid value x for configuration ssl.key.password`
_REFUSED = expression(
    rf"\bvalue[ \t]*[:=]?[ \t]+(\S[^\n]*?)[ \t]+(?:for|of|in)[ \t]+(?:the[ \t]+)?"
    rf"(?:configuration|config|field|property|setting|option|key|"
    rf"parameter|column|attribute|argument)?[ \t:]*(?:{QUOTE})?({names.NAME})",
    nocase=True,
)
_VALUE_FIRST = expression(
    rf"(?:{QUOTE})?\bvalue(?:{QUOTE})?\s*[=:]\s*(?:\\*\"([^\"\n]+?)\\*\"|\\*'([^'\n]+?)\\*'|([^\s\"',;]+))(?:[,;]\s*|\s+)"
    rf"(?:{QUOTE})?(?:name|key)(?:{QUOTE})?\s*[=:]\s*(?:{QUOTE})?({names.NAME})(?:$|[\s\"'\\,}})\]])",
    nocase=True,
)
_VALIDATED = expression(rf"({names.NAME})\n[ \t]+[^\n]*\binput_value=(?:{QUOTE})([^\n]*?)(?:{QUOTE})[,\]]", nocase=True)
_TUPLE = expression(
    rf"(?:(?:^|[\[\]({{,:][ \t]*)\(|\{{)[ \t]*[bu]?(?:{QUOTE})?({names.NAME}|authorization)(?:{QUOTE})?,[ \t]*(?:[bu]|<<)?"
    rf"(?:{QUOTE})([^\"'\n]+)(?:{QUOTE})(?:>>)?[ \t]*[)}}]",
    nocase=True,
)
_BRACKETED = expression(rf"({names.WORD})([ \t]*)[(<\[「『]([^\s()<>\[\]「」『』]{{4,}})[)>\]」』]", nocase=True)
_ABSENT = (b"specified", b"given", b"provided", b"expected", b"allowed")
_STRIPPED = b"\"'`\\[]"
_DIGITS = expression(r"-?[0-9]{1,5}")


def sentences(data: bytes) -> Iterator[Stretch]:
    """Yield the values of secrets in sentences that have more words than a sign between the name and the value."""
    lines, at = NumberedLines(data), 0
    while (hit := _SPOKEN.search(data, at)) is not None:
        at = hit.end()
        kind, whose = names.kind_of(hit.group(1).strip(b".-_")), hit.group(2)
        if kind is None or kind == names.INFOS or (whose is not None and _WHOSE.fullmatch(whose) is not None):
            continue
        end = lines.end(at)
        quote = hit.group(3) or b""
        near = min(end, at + BEGINNING)
        stop = closing_quote(data, at, quote, near) if quote else token_end(data, at, near)
        if at < stop and is_spoken_secret(data[at:stop], 4 if kind == names.PASSWORDS else 6):
            if stop == near:
                stop = closing_quote(data, at, quote, end) if quote else token_end(data, at, end)
            yield at, stop
            at = stop
    for hit in _BRACKETED.finditer(data):
        kind = names.kind_of(hit.group(1).strip(b".-_"))
        spoken = kind == names.PASSWORDS
        if (spoken or (kind is not None and not hit.group(2))) and is_spoken_secret(hit.group(3), 4 if spoken else 6):
            yield hit.span(3)
    for hit in _ELAPSED.finditer(data):
        if is_spoken_secret(hit.group(2), 8):
            yield hit.span(2)
    for hit in _PAIR.finditer(data):
        if names.is_mixed(hit.group(1).partition(b":")[2], 4):
            yield hit.span(1)


def refusals(data: bytes) -> Iterator[Stretch]:
    """Yield values that messages quote when they refuse them: before the name of the secret, or some words behind it."""
    for hit in _REFUSED.finditer(data):
        value = hit.group(1)
        first = value.partition(b" ")[0].lower()
        if _names(hit.group(2)) and not (names.is_prose(first) or first in _ABSENT) and is_set_value(value):
            yield hit.span(1)
    for hit in _VALUE_FIRST.finditer(data):
        group = next(number for number in (1, 2, 3) if hit.group(number))
        if _names(hit.group(4)) and is_set_value(hit.group(group)):
            yield hit.span(group)
    for shape in (_VALIDATED, _TUPLE):
        for hit in shape.finditer(data):
            header = hit.group(1).lower() == b"authorization"
            if (header or _names(hit.group(1))) and is_set_value(hit.group(2)) and not names.is_wordy(hit.group(2)):
                yield hit.span(2)


def is_spoken_secret(value: bytes, least: int) -> bool:
    """Tell whether a value in a sentence is a secret: it mixes letters and digits, has at least `least` characters, and is no
    identifier, algorithm, placeholder or message of Kafka's."""
    return names.is_mixed(value, least) and not (
        names.is_nothing(value) or names.is_statement(value) or names.is_identifier(value) or names.is_algorithm(value)
    )


def is_set_value(value: bytes) -> bool:
    """Tell whether a quoted value is one that somebody set: no placeholder, no small number, no message of Kafka's."""
    bare = value.strip(_STRIPPED)
    return not (names.is_nothing(value) or names.is_nothing(bare) or _DIGITS.fullmatch(bare) or names.is_statement(bare))


def _names(name: bytes) -> bool:
    return names.kind_of(name.strip(b".-_")) is not None
