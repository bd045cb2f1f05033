"""Finds values behind the name of a secret: in settings, JSON (escaped any number of times), maps, sentences, pairs of name and
value."""

from __future__ import annotations

from collections.abc import Iterator

import re2
from msgspec import Struct

from engine.match.checks import expression
from engine.match.masking import Stretch, names
from engine.match.masking.values import BEGINNING, QUOTE, NumberedLines, closing_quote, opening_quote, spaced_end, token_end

_ASSIGNED = expression(
    rf"({names.NAME})(?:{QUOTE}|\])*[ \t]*(?:[=:]\s*\{{\s*(?:{QUOTE})?value(?:{QUOTE})?\s*[=:]|"
    rf":\s*rejected value\b|[({{]value=|"
    rf"=>|->|<-|:=|\\?={{1,2}}|\\?:|%3[DA]|(?:[ \t]+(?:is|was|ist|es|est)\b|"
    rf"[은는이가はが是为為])[ \t]*:?|"
    rf"[,;]?\s*(?:{QUOTE})?value(?:{QUOTE})?\s*[=:]|</[\w:]+>\s*<value>|/?>\s*<value>|[ \t]*\([ \t]*{QUOTE}|"
    rf"[ \t]+[^\s=:,;()\[\]{{}}<>])",
    nocase=True,
)
_VERBS = tuple(
    verb.encode() for verb in ("is", "was", "ist", "es", "est", "은", "는", "이", "가", "は", "が", "是", "为", "為")
)
# the syntax of programming languages around an optional, a byte or a typed string: `Some("x")`, `N'x'`, `<<"x">>`
_WRAPPER = expression(
    r"(?:Some|Just|Ok|Optional|Option|Secret\w*|Sensitive\w*|Redacted\w*|Password|Zeroizing|String|str)[ ]?\(|Optional\[|"
    r"\s*string\([0-9]+\)\s+|[bBrRuUN](?:[\"'])|<<|\"\"(?:\")|''(?:')|\[(?:\[)"
)
_PROVIDER = expression(r"\$\{secrets?$")  # `${secrets:namespace/name:key}`: a reference of Kafka's, not a value
_ITEM = expression(r"[ \t]*-[ \t]+(\S[^\n]{0,255})(?:\n|$)")
_UNSET = b"null"  # the value that Kafka prints most often
_BLOCK = expression(r"[|>][+-]?[ \t]*")  # YAML: the value is on the next lines
_NOT_A_VALUE = expression(
    r"[ \t]*(?:at |\.\.\.|caused by|\[?[0-9]{4}[-/][0-9]{2}|[\"']?[\w.\-]+[\"']?\s*(?:[=:]\s|[=:]$|=))", nocase=True
)
_REFUSING = expression(
    r"\b(?:invalid|bad|wrong|missing|no|unknown|unexpected|unrecognized|illegal|unable|cannot|fail\w*|error|load\w*|fetch\w*|get\w*|"
    r"retriev\w*|obtain\w*|find|read\w*|pars\w*|resolv\w*|decrypt\w*|verif\w*|validat\w*|refresh\w*|renew\w*|expired|mismatch)\b",
    nocase=True,
)
_MOST_WRAPPERS = 3
_LONGEST_NEXT = 4096  # bytes of a value on the next line
_BEFORE = 48  # bytes before a name that are searched for words of refusal
_IN_A_LIST = expression(r"[;,{][ \t]*\\*[\"']?$")  # in a list of settings, where a value extends to the next setting
_INTRODUCED = expression(r"(?:^|[:\]>|-][ \t]|\t|^[ \t]*[-*][ \t])$")
_DIGITS = expression(r"[0-9]+")
_NUMBERS = expression(r"[0-9, ]*")
_UPPER = expression(r"[A-Z_]+")
_REQUEST = expression(r"api[._\-]?key$", nocase=True)  # `apiKey=FETCH`: in Kafka the type of a request
_COMPOUND = expression(r"[a-z][._\-]?[A-Z]|[A-Za-z][._\-][A-Za-z]")
_LIST = frozenset(b"[{")


class Assignment(Struct, frozen=True):
    """The name of a secret with the place of its value.

    `kind`: as of `names.kind_of`. `sign`: how the value follows the name, one of `=`, `:`, `is`, `pair`, `call` and `blank`.
    `at`: the index of the value. `before`: the text before the name on its line, at most 48 bytes. `gap`: whether a blank
    follows the name.
    """

    kind: str
    name: bytes
    sign: str
    at: int
    before: bytes
    gap: bool

    @property
    def alone(self) -> bool:
        """Whether only blanks, quotes and marks of a list stand before the name on its line."""
        return len(self.before) < _BEFORE and not self.before.strip(b" \t\"'\\{-")

    @property
    def introduced(self) -> bool:
        """Whether the name begins its line, or follows a tab, the mark of a list or the header of a log line."""
        return _INTRODUCED.search(self.before) is not None

    @property
    def spaced(self) -> bool:
        """Whether the value may contain blanks: a blank stands before the `=`, or the name is in a list of settings."""
        return (self.gap and self.sign == "=") or _IN_A_LIST.search(self.before) is not None

    @property
    def refused(self) -> bool:
        """Whether the text before the name reports that the value is missing or wrong."""
        return _REFUSING.search(self.before) is not None


def assigned(data: bytes) -> Iterator[Stretch]:
    """Yield the values behind names of secrets."""
    at, lines = 0, NumberedLines(data)
    while (hit := _ASSIGNED.search(data, at)) is not None:
        (start, name_end), at = hit.span(1), hit.end()
        name = data[start:name_end].removeprefix(b"u0022").removeprefix(b"u0027").strip(b".-_")  # a quote, escaped in JSON
        kind = names.kind_of(name)
        sign, at = _sign(data, name_end, at)
        if kind is None or _PROVIDER.search(data[max(0, start - 2) : name_end]) is not None:
            continue
        begin = _past_wrappers(data, _past_blanks(data, at))
        if data.startswith(_UNSET, begin) and data[begin + 4 : begin + 5].isspace():
            continue
        lines.end(start)
        assignment = Assignment(
            kind, name, sign, begin, data[max(lines.begin, start - _BEFORE) : start], data[name_end : name_end + 1].isspace()
        )
        stretch = _value(data, assignment, lines.end(begin))
        if stretch is not None:
            yield stretch
            at = max(at, stretch[1])


def _sign(data: bytes, name_end: int, end: int) -> tuple[str, int]:
    """Return the sign between a name and its value, and the index of the value. The expression cannot look ahead, so it may
    have matched the first character of the value; the index is before that."""
    tail = data[name_end:end].strip().lower()
    if tail.endswith((b"=", b">", b"<-", b":", b"%3d", b"%3a")):
        return "pair" if b"value" in tail else ":" if tail.endswith((b":", b"%3a")) else "=", end
    if tail.endswith(_VERBS):
        return "is", end
    if tail.endswith(b"value"):
        return "pair", end
    if b"(" in tail:
        return "call", data.rfind(b"(", name_end, end) + 1
    while data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return "blank", end - 1


def _past_blanks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b" \t":
        at += 1
    return at


def _past_wrappers(data: bytes, at: int) -> int:
    """Return the index of a string inside the syntax of a programming language around it (see `_WRAPPER`): that of its opening
    quote or bracket, if it has one."""
    for _ in range(_MOST_WRAPPERS):
        hit = _WRAPPER.match(data, at, min(len(data), at + _BEFORE))
        if hit is None:
            break
        at = int(hit.end()) - (hit.group()[-1:] in b"\"'[")
    return at


def _value(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    """Return the stretch of the secret of `assignment`; None when its value is none. `end`: the end of its line."""
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
    near = min(end, at + BEGINNING)
    stop = token_end(data, at, near)
    cut_off = stop == near < end
    if not _is_secret(data[at:stop], b"" if cut_off else data[stop : min(end, stop + 64)], assignment):
        return None
    stop = token_end(data, at, end) if cut_off else stop
    signs = (":", "=") if assignment.kind == names.PASSWORDS else (":",)
    spaced = assignment.alone or assignment.spaced or (assignment.introduced and assignment.sign in signs)
    return (at, spaced_end(data, at, end) if spaced and assignment.kind != names.TOKENS else stop)


def _next_line(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    begin = _past_blanks(data, end + 1)
    if (item := _ITEM.match(data, end + 1)) is not None:
        return _items(data, item, assignment)
    begin = _past_wrappers(data, begin)
    stop = data.find(b"\n", begin, begin + _LONGEST_NEXT)
    stop = min(len(data), begin + _LONGEST_NEXT) if stop < 0 else stop
    value = data[begin:stop].partition(b" (")[0].rstrip()  # without the logger that a layout prints at the end
    phrase = assignment.kind == names.PASSWORDS and assignment.introduced and begin > end + 1
    if not value or (b" " in value and not phrase) or _NOT_A_VALUE.match(data, begin, min(stop + 1, len(data))) is not None:
        return None
    return (begin, begin + len(value)) if _is_secret(value.partition(b" ")[0], b"", assignment) else None


def _items(data: bytes, item: re2._Match, assignment: Assignment) -> Stretch | None:
    """Return the stretch from the first to the last item of a YAML list; None when they are no secrets. `item`: the first."""
    if not _is_secret(item.group(1).strip(), b"", assignment) or assignment.sign != ":":
        return None
    begin, end = item.span(1)
    while (next_item := _ITEM.match(data, end + 1)) is not None:
        end = next_item.end(1)
    return begin, end


def _bracketed(data: bytes, assignment: Assignment, end: int) -> Stretch | None:
    """Return the stretch inside the brackets of a list or the braces of an ODBC value; None when it is no secret."""
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
        return names.is_user_info(value)
    if assignment.sign == "blank":
        return assignment.kind == names.PASSWORDS and not names.is_prose(value)
    if assignment.kind == names.TOKENS:
        return len(value) > 4 and not (names.is_statement(value) or _UPPER.fullmatch(value)) and b" " not in value
    return not (assignment.kind == names.SECRETS and names.is_statement(value))


def _is_secret(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    """Tell whether a value without quotes is a secret. `rest`: the rest of its line."""
    if names.is_nothing(token) or (token == b"not" and rest.startswith(b" set")):
        return False
    if assignment.kind == names.INFOS:
        return names.is_user_info(token)
    if assignment.sign == "blank":
        return _is_apart(token, assignment)
    if assignment.sign == "is":
        spoken = assignment.kind == names.PASSWORDS
        return (names.is_mixed(token, 4 if spoken else 6) and not names.is_algorithm(token)) or (
            spoken and len(token) >= 4 and _DIGITS.fullmatch(token) is not None
        )
    if assignment.kind == names.TOKENS:
        return _is_token(token, rest, assignment)
    if assignment.kind == names.PASSWORDS:
        return _is_password(token, rest, assignment)
    return not _is_no_secret(token, assignment) and _is_other_secret(token, rest, assignment)


def _is_apart(token: bytes, assignment: Assignment) -> bool:
    """Tell whether a value that follows its name after blanks only is a secret: it is no word, and the name is a password's or
    consists of several words."""
    compound = assignment.kind == names.PASSWORDS or _COMPOUND.search(assignment.name) is not None
    return compound and names.is_mixed(token) and not (names.is_statement(token) or names.is_identifier(token))


def _is_no_secret(token: bytes, assignment: Assignment) -> bool:
    """Tell whether a value is one that Kafka prints behind names that look like those of secrets: the type of a request, an
    error, a small number."""
    if _DIGITS.fullmatch(token):
        return len(token) < 6 or b"-" in assignment.name
    return names.is_statement(token) or (_UPPER.fullmatch(token) is not None and _REQUEST.search(assignment.name) is not None)


def _is_other_secret(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if assignment.sign != ":":
        return True
    sole = not rest.strip(b" \t\"')]},;.") and not assignment.refused and not assignment.name.lower().endswith(b"secrets")
    return names.is_mixed(token) or not (names.is_wordy(token) and (not sole or names.is_prose(token)))


def _is_token(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if names.is_statement(token) or len(token) < 5 or _UPPER.fullmatch(token):
        return False
    if _DIGITS.fullmatch(token):
        return len(token) >= 12
    if assignment.sign != ":" or names.is_mixed(token):
        return True
    if names.is_shuffled(token):
        return not assignment.refused
    return (
        token.isascii()
        and len(token) >= 8
        and not rest.strip(b" \t\"')]},;.")
        and not assignment.refused
        and not names.is_prose(token)
    )


def _is_password(token: bytes, rest: bytes, assignment: Assignment) -> bool:
    if _DIGITS.fullmatch(token) and len(token) < 4:
        return names.is_card_code(assignment.name) and len(token) == 3
    if names.is_code(assignment.name) and not names.has_digit(token):
        return False
    if assignment.sign != ":":
        return not (names.is_statement(token) and _UPPER.fullmatch(token.rstrip(b",;.)]}")))
    if names.is_prose(token) or names.is_statement(token):
        return False
    in_sentence = rest.strip() and token[:1].isupper() and names.is_wordy(token)
    return not in_sentence
