"""Finds the end of a secret value from its start: by quotes, delimiters and blanks."""

from __future__ import annotations

from engine.match.checks import expression

QUOTE = r"""(?:\\*["'`]|&quot;|&#3[49];|&apos;|%2[27]|\\+u002[27]|\\+x2[27])"""
_OPENING = expression(QUOTE + r"|[«“”‘’„「『]")
_FIRST = frozenset(b"\\\"'`&%")
_CLOSING = {"«": "»", "“": "”", "„": "“", "‘": "’", "「": "」", "『": "』"}
_BLANK = expression(r"\s")
# a value without quotes ends at: a delimiter before another key or a blank, a bracket that the value has not opened, a quote
# of the text around it, the closing tag of an element, an escaped line end before another key
_KEY = r"""\\*["']?[\w.\-]{1,64}\\*["']?\s*(?:[=:]+)\s*[^=\s,;&]"""
_DELIMITER = expression(
    rf"""[,;&|]+(?:$|\s|\\*["'`)\]}}]|&quot;|{_KEY})|\\*["'`](?:$|[\s,;:.)\]}}>|/])|&quot;|&lt;|</|%2[26]|\\+[nrt](?:$|\s|\\|{_KEY})"""
    r"""|\\u002[267]|\\u003c"""
)
_ENCODED = expression(r"%[0-9a-f]{2}", nocase=True)
_BRACKET = expression(r"[()\[\]{}]")
_CLOSED = expression(r"""[)\]}]{1,8}(?:$|[\s,;.:"'`/(\\&|<>])""")
# the end of a value that may contain blanks
_PLAUSIBLE_END = expression(
    r"""[,;]\s|[,;]?\s+\\*["']?[\w.\-]+\\*["']?\s*(?:=|:\s)|[,;][\w.\-]+=|\s[(\[{<|]|[)\]}](?:$|[\s,;.])|\\*["](?:$|[\s,;)\]}])"""
    r"""|\.\s|</|\\+[nr]|\s(?:and|at|because|but|by|failed|for|from|in|into|is|not|of|on|or|that|to|used|user|using|was|when|while|with)\s"""
)
BEGINNING = 128  # bytes of a value that decide whether it is a secret: other texts may be long and have many more names
WINDOW = 512  # bytes that are searched first: most values are short


class NumberedLines:
    """Finds the bounds of lines. For indexes in ascending order it searches each line once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.begin, self._end = 0, -1

    def end(self, at: int) -> int:
        """Return the end of the line that contains `at`, and set `begin` to its start."""
        if not self.begin <= at <= self._end:
            self.begin = self._data.rfind(b"\n", max(self._end, 0), at) + 1 or (self._end + 1 if self._end >= 0 else 0)
            end = self._data.find(b"\n", at)
            self._end = len(self._data) if end < 0 else end
        return self._end


def opening_quote(data: bytes, at: int, before: int) -> bytes:
    """Return the quote at `at`, with its backslashes; empty when there is none."""
    if at >= before or (data[at] not in _FIRST and data[at] < 0x80):
        return b""
    hit = _OPENING.match(data, at, min(before, at + 32))
    return b"" if hit is None else bytes(hit.group())


def closing_quote(data: bytes, at: int, quote: bytes, before: int) -> int:
    """Return the end of a quoted text that begins at `at`, behind `quote`; `before` when no quote closes it.

    A quote with more backslashes than the opening one belongs to the text; one with fewer closes the text around it, and so
    ends this one too.
    """
    mark, slashes = quote[-1:], len(quote) - 1
    if quote.strip(b"\\") not in (b'"', b"'", b"`"):
        end = data.find(_CLOSING.get(quote.decode(), quote.decode()).encode(), at, before)
        return before if end < 0 else end
    while (end := data.find(mark, at, before)) >= 0:
        first = end
        while first > at and data[first - 1 : first] == b"\\":
            first -= 1
        run = end - first
        if (run % 2 == 0) if slashes == 0 else run <= slashes:
            doubled = data[end + 1 : end + 2] == mark == b"'" and run == 0  # SQL's quote inside a text
            if not doubled:
                return first if slashes else end
            end += 1
        at = end + 1
    return before


def token_end(data: bytes, at: int, before: int) -> int:
    """Return the end of a value without quotes that begins at `at`."""
    size = WINDOW
    while True:
        window = min(before, at + size)
        end = _token_end(data, at, window)
        if end < window or window == before:
            return end
        size *= 8


def spaced_end(data: bytes, at: int, before: int) -> int:
    """Return the plausible end of a value that begins at `at` and may contain blanks."""
    first = token_end(data, at, before)
    if first < before and data[first : first + 1] not in b" \t":
        return first
    hit = _PLAUSIBLE_END.search(data, first, before + 1)
    end = before if hit is None else min(hit.start(), before)
    return at + len(data[at:end].rstrip())


def _token_end(data: bytes, at: int, window: int) -> int:
    blank = _BLANK.search(data, at, window)
    end = window if blank is None else blank.start()
    delimiter = _DELIMITER.search(data, at, end + 1)  # the blank included: `$` matches only at the end of the data
    if _ENCODED.fullmatch(data, max(0, at - 3), at) is None:  # `%26` ends a value that is itself within an encoded text
        while delimiter is not None and delimiter.group()[:1] == b"%":
            delimiter = _DELIMITER.search(data, delimiter.end(), end + 1)
    if delimiter is not None and at < delimiter.start() < end:
        end = delimiter.start()
    return _unopened(data, at, end)


def _unopened(data: bytes, at: int, end: int) -> int:
    """Return the index of the first closing bracket that has no opening one since `at` and stands where a value may end; `end`
    when there is none."""
    depth = 0
    for bracket in _BRACKET.finditer(data, at, end):
        place = bracket.start()
        if data[place] in b"([{":
            depth += 1
        elif depth:
            depth -= 1
        elif _CLOSED.match(data, place) is not None:
            return int(place)
    return end
