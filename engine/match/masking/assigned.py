"""Values behind the name of a secret: settings, JSON however often escaped, maps, sentences, pairs of name and value."""

from __future__ import annotations

from collections.abc import Iterator

import re2
from msgspec import Struct

from engine.match.checks import expression
from engine.match.masking import names
from engine.match.masking.values import QUOTE, closing_quote, line_end, opening_quote, spaced_end, token_end

Stretch = tuple[int, int]

_ASSIGNED = expression(
    rf"({names.NAME})(?:{QUOTE}|\])*[ \t]*(?:(=>|:=|={{1,2}}|:|%3[DA])|((?:[ \t]+(?:is|was|ist|es|est)\b|[은는이가はが是为為])[ \t]*:?)|"
    rf"([,;]?\s*(?:{QUOTE})?value(?:{QUOTE})?\s*[=:]|</[\w:]+>\s*<value>|/?>\s*<value>)|([ \t]+){QUOTE})",
    nocase=True,
)
_BLANKS = expression(r"[ \t]*")
_BLOCK = expression(r"[|>][+-]?[ \t]*")  # YAML: the value stands in the next lines
_NOT_A_VALUE = expression(r"[ \t]*(?:at |\.\.\.|caused by|\[?[0-9]{4}[-/][0-9]{2}|[\"']?[\w.\-]+[\"']?\s*(?:[=:]\s|[=:]$|=))", nocase=True)
_REFUSING = expression(
    r"\b(?:invalid|bad|wrong|missing|no|unknown|unexpected|unrecognized|illegal|unable|cannot|fail\w*|error|load\w*|fetch\w*|get\w*|"
    r"retriev\w*|obtain\w*|find|read\w*|pars\w*|resolv\w*|decrypt\w*|verif\w*|validat\w*|refresh\w*|renew\w*|expired|mismatch)\b",
    nocase=True,
)
_BEFORE = 48  # bytes before a name that may say that its value was refused or not found
_INTRODUCED = expression(r"(?:^|[:\]>|-][ \t]|\t|^[ \t]*[-*][ \t])$")
_DIGITS = expression(r"[0-9]+")
_NUMBERS = expression(r"[0-9, ]*")
_UPPER = expression(r"[A-Z_]+")
_REQUEST = expression(r"api[._\-]?key$", nocase=True)  # `apiKey=FETCH`: Kafka's word for the kind of a request
_LIST = frozenset(b"[{")


class Assignment(Struct, frozen=True):
    """A name and how its value follows: `sign` is one of `=`, `:`, `is`, `pair` and `quote`, `at` the place of the value.

    `alone`: blanks only are before the name on its line. `introduced`: blanks, or what may stand before a setting.
    `spaced`: blanks are around the sign.
    """

    kind: str
    name: bytes
    sign: str
    at: int
    alone: bool
    introduced: bool
    spaced: bool
    refused: bool


def assigned(data: bytes) -> Iterator[Stretch]:
    """Yield the stretches of values behind names of secrets."""
    at, line, end = 0, 0, -1
    while (hit := _ASSIGNED.search(data, at)) is not None:
        at = hit.end(5) if hit.group(5) else hit.end()
        if at > end:
            line, end = data.rfind(b"\n", line, hit.start()) + 1 or line, line_end(data, at)
        assignment = _assignment(data, hit, line)
        if assignment is None:
            continue
        stretch = _value(data, assignment, max(end, at))
        if stretch is not None:
            yield stretch
            at = max(at, stretch[1])


def _assignment(data: bytes, hit: re2._Match, line: int) -> Assignment | None:
    name = hit.group(1).strip(b".-_")
    sign = _sign(hit)
    begin = _BLANKS.match(data, hit.end(5) if hit.group(5) else hit.end()).end()
    tight = sign == "=" and begin == hit.end() and data[hit.start(2) - 1 : hit.start(2)] not in (b" ", b"\t")
    kind = names.kind_of(name, tight)
    if kind is None:
        return None
    start = hit.start()
    before = data[max(line, start - _BEFORE) : start]
    spaced = sign == "=" and data[hit.start(2) - 1 : hit.start(2)] in (b" ", b"\t")
    return Assignment(
        kind,
        name,
        sign,
        begin,
        alone=start - line <= _BEFORE and not before.strip(b" \t\"'\\{-"),
        introduced=_INTRODUCED.search(before) is not None,
        spaced=spaced,
        refused=_REFUSING.search(before) is not None,
    )


def _sign(hit: re2._Match) -> str:
    if hit.group(2):
        return ":" if hit.group(2) in (b":", b"%3A", b"%3a") else "="
    if hit.group(3):
        return ":" if hit.group(3).rstrip().endswith(b":") else "is"
    return "pair" if hit.group(4) else "quote"


def _value(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    """Return where the secret of `assignment` stands; None when there is none. Its line ends at `end`."""
    at = assignment.at
    if at >= end or _BLOCK.fullmatch(data, at, end) is not None:
        return _next_line(data, assignment, end)
    quote = opening_quote(data, at, end)
    if quote:
        begin = at + len(quote)
        stop = closing_quote(data, begin, quote, end)
        return (begin, stop) if _is_quoted_secret(data[begin:stop], assignment) else None
    if data[at] in _LIST:
        return _bracketed(data, assignment, end)
    stop = token_end(data, at, end)
    token = data[at:stop]
    if not _is_secret(token, data[stop:end][:64], assignment):
        return None
    spaced = assignment.alone or assignment.spaced or (assignment.introduced and assignment.sign == ":")
    return (at, spaced_end(data, at, end) if spaced and assignment.kind != names.TOKENS else stop)


def _next_line(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    begin = _BLANKS.match(data, min(end + 1, len(data))).end()
    stop = line_end(data, begin)
    value = data[begin:stop].rstrip()
    if not value or b" " in value or _NOT_A_VALUE.match(data, begin, min(stop + 1, len(data))) is not None:
        return None
    return (begin, begin + len(value)) if _is_secret(value, b"", assignment) else None


def _bracketed(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    """Return the inside of a list, or of what ODBC puts into braces."""
    at, close = assignment.at, b"]" if data[assignment.at : assignment.at + 1] == b"[" else b"}"
    if close == b"}" and (assignment.kind != names.PASSWORDS or assignment.sign != "="):
        return None
    stop = data.find(close, at, end)
    stop = end if stop < 0 else stop
    inside = data[at + 1 : stop]
    if names.is_nothing(data[at : stop + 1]) or names.is_nothing(inside) or _NUMBERS.fullmatch(inside) is not None:
        return None
    return (at + 1, stop)


def _is_quoted_secret(value: bytes, assignment: Assignment) -> bool:
    if names.is_nothing(value):
        return False
    if assignment.kind == names.INFOS:
        return b":" in value
    if assignment.sign == "quote":
        return assignment.kind == names.PASSWORDS and not names.is_prose(value)
    if assignment.kind == names.TOKENS:
        return len(value) > 4 and not (names.is_statement(value) or _UPPER.fullmatch(value)) and b" " not in value
    return not (assignment.kind == names.SECRETS and names.is_statement(value))


def _is_secret(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    """Tell whether a value without quotes is a secret; `rest` is what follows on its line."""
    if names.is_nothing(token) or (token == b"not" and rest.startswith(b" set")):
        return False
    if assignment.kind == names.INFOS:
        return b":" in token
    if assignment.sign == "is":
        return names.is_mixed(token)
    if assignment.kind == names.TOKENS:
        return _is_token(token, rest, assignment)
    if assignment.kind == names.PASSWORDS:
        return _is_password(token, rest, assignment)
    return not _is_no_secret(token, assignment) and _is_other_secret(token, rest, assignment)


def _is_no_secret(token: bytes, assignment: Assignment) -> bool:
    """Tell whether a value is what Kafka prints behind names that look like a secret's: a request, an error, a small number."""
    if _DIGITS.fullmatch(token):
        return len(token) < 6 or b"-" in assignment.name
    return names.is_statement(token) or (_UPPER.fullmatch(token) is not None and _REQUEST.search(assignment.name) is not None)


def _is_other_secret(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if assignment.sign != ":":
        return True
    sole = not rest.strip(b" \t\"')]},;.")
    return names.is_mixed(token) or not (names.is_wordy(token) and (not sole or assignment.refused or names.is_prose(token)))


def _is_token(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if names.is_statement(token) or len(token) < 5 or _UPPER.fullmatch(token):
        return False
    if _DIGITS.fullmatch(token):
        return len(token) >= 12
    if assignment.sign != ":" or names.is_mixed(token):
        return True
    return len(token) >= 8 and not rest.strip(b" \t\"')]},;.") and not assignment.refused and not names.is_prose(token)


def _is_password(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if assignment.sign != ":":
        return not (names.is_statement(token) and _UPPER.fullmatch(token.rstrip(b",;.)]}")))
    if names.is_prose(token) or names.is_statement(token):
        return False
    in_sentence = rest.strip() and token[:1].isupper() and names.is_wordy(token)
    return not in_sentence
