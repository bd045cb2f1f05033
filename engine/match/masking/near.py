"""Finds random text near a word such as `key`, `token` or `signature`, by Shannon's entropy, where no name and no shape
tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import log2

from engine.match.checks import expression
from engine.match.masking import Stretch

_WORD = expression(
    r"(?:^|[^\w.\-/])(?:\w+[_ ])?(?:keys?|tokens?|secrets?|signatures?|signed|credentials?|passw\w*|passphrases?|hmac|"
    r"auth\w*|api[_-]?key|"
    r"apikey|bearer|nonce|cookies?|sessions?|private|access)(?:$|[^\w.\-/])",
    nocase=True,
)
_WINDOW = 64  # bytes after such a word within which a secret begins
_CANDIDATE = expression(r"[A-Za-z0-9+/_\-]{20,}={0,2}")
_LONGEST = 512
_IDENTIFIER = expression(
    r"(?:\bids?|uuid|guid|digest|hash|checksum|fingerprint|etag|commit|revision|sha-?[0-9]*|md5|member|consumer|cluster|topic|directory|dir|"
    r"version|branch|image|file|path|class)[\"']?\s*(?:=|:|\bis\b)?\s*[\"'(\[{]?$",
    nocase=True,
)
_UUID = expression(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_TOPIC_ID = 22  # characters in Kafka's ids of topics, directories and clusters
_HEX = expression(r"(?:[0-9a-f]{32,}|[0-9A-F]{32,})")
_WORDS = expression(r"[A-Z]?[a-z]{3,}|[0-9]{4,}")
_MIXED = (expression(r"[a-z]"), expression(r"[A-Z]"), expression(r"[0-9]"))
_BITS = 3.5  # per character; names and paths have less, or consist of words
_HEX_BITS = 3.0
_MOST_WORDS = 0.5  # of the length, in words


def near(data: bytes) -> Iterator[Stretch]:
    """Yield random texts of 20 or more characters behind words that announce a secret."""
    at = 0
    while (word := _WORD.search(data, at)) is not None:
        at = max(word.end() - 1, word.start() + 1)
        end = data.find(b"\n", at, at + _WINDOW + _LONGEST)
        end = min(len(data), at + _WINDOW + _LONGEST) if end < 0 else end
        for candidate in _CANDIDATE.finditer(data, at, end):
            if candidate.start() > at + _WINDOW:
                break
            if (
                is_random(candidate.group())
                and _IDENTIFIER.search(data[max(0, candidate.start() - 24) : candidate.start()]) is None
            ):
                yield candidate.span()
                at = max(at, candidate.end())


def is_random(text: bytes) -> bool:
    """Tell whether a text looks like a random key: in base64 with letters of both cases and digits, or in hexadecimal."""
    if len(text) == _TOPIC_ID or _UUID.search(text) is not None:
        return False
    if _HEX.fullmatch(text) is not None:
        return bool(bits(text) >= _HEX_BITS)
    if any(shape.search(text) is None for shape in _MIXED) or bits(text) < _BITS:
        return False
    words = sum(int(hit.end() - hit.start()) for hit in _WORDS.finditer(text))
    return words < _MOST_WORDS * len(text)


def bits(text: bytes) -> float:
    """Return Shannon's entropy of `text` in bits a character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values()) if size else 0.0
