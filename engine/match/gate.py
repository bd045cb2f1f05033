"""The gate: the signs of a whole plan searched for at once in the text of an event, whatever their number.

Each sign has texts of which one must occur where it matches, and each text four bytes that few others have: only signs of whose
texts those stand in an event are looked for. That costs as much for a text never seen before as for one seen often.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain

from msgspec import Struct

from engine.codec import dumps, loads
from engine.match import certain
from engine.match.certain import Telling, all_certain_texts, certain_texts, most_telling
from engine.match.checks import expression
from engine.match.signs import Signs, kept_name
from engine.ports import Cache

WIDTH = 4  # bytes that are looked up as one number
_FLAGS = re.compile(r"(?:\(\?[ims]+\))*")
_FOLDED = (("\u212a".encode(), b"k"), ("\u017f".encode(), b"s"))  # the Kelvin sign and the long s: RE2 takes them for letters


class _Text(Struct, frozen=True, array_like=True):
    """A text in small letters, where its four telling bytes stand in it, and the signs it is certain of, by number."""

    text: str
    at: int
    signs: tuple[int, ...]


class Gate:
    """Tells which of several things an event's text may bear, by their signs.

    Args:
        kept: where its index may lie ready: to make it takes as long as to scan a small log.
    """

    __slots__ = ("_always", "_bearers", "_needed", "_plain", "_telling", "_unsure")

    def __init__(self, signs: Sequence[Signs], kept: Cache | None = None) -> None:
        """Number the things as their signs stand in `signs`."""
        self._always = frozenset(number for number, each in enumerate(signs) if not each.regexes)
        bearers: dict[str, list[int]] = {}
        for number, each in enumerate(signs):
            for regex in each.regexes:
                bearers.setdefault(regex, []).append(number)
        regexes, self._bearers = tuple(bearers), bearers
        texts = _texts_of(regexes, kept)
        self._telling = _by_telling_bytes(texts, regexes)
        self._unsure = frozenset(regexes) - {regexes[at] for each in texts for at in each.signs}
        self._plain: dict[str, bytes | None] = {}
        self._needed: dict[str, Sequence[tuple[bytes, ...]]] = {}

    def signs_in(self, text: bytes) -> frozenset[str]:
        """Return the signs that match in `text` (UTF-8)."""
        low = _lowered(text)
        numbers = self._telling.keys() & chain.from_iterable(_numbers(low))
        maybe = {sign for number in numbers for words, signs in self._telling[number] if words in low for sign in signs}
        return frozenset(sign for sign in chain(self._unsure, maybe) if self._bears(sign, low) and self._matches(sign, text))

    def possible(self, signs: Set[str]) -> frozenset[int]:
        """Return the numbers of what a text with these `signs` may bear."""
        return self._always.union(*(self._bearers[sign] for sign in signs)) if signs else self._always

    def _bears(self, sign: str, low: bytes) -> bool:
        """Tell whether all words of a sign are in a text in small letters: they cost far less to look for than the sign."""
        needed = self._needed.get(sign)
        if needed is None:
            needed = self._needed[sign] = _needed(sign)
        return all(any(words in low for words in either) for either in needed)

    def _matches(self, sign: str, text: bytes) -> bool:
        if sign not in self._plain:
            words = re.sub(r"\\(\W)", r"\1", sign)
            self._plain[sign] = words.encode() if re.escape(words) == sign else None
        plain = self._plain[sign]
        return plain in text if plain is not None else expression(sign).search(text) is not None


def _by_telling_bytes(texts: Sequence[_Text], regexes: Sequence[str]) -> Mapping[int, Sequence[tuple[bytes, tuple[str, ...]]]]:
    found: dict[int, list[tuple[bytes, tuple[str, ...]]]] = defaultdict(list)
    for each in texts:
        words = each.text.encode()
        number = int.from_bytes(words[each.at : each.at + WIDTH], sys.byteorder)
        found[number].append((words, tuple(regexes[at] for at in each.signs)))
    return found


def _numbers(text: bytes) -> Iterator[memoryview]:
    """Yield every four bytes of `text` as a number, in four passes."""
    view = memoryview(text)
    for start in range(min(WIDTH, len(text))):
        yield view[start : len(text) - (len(text) - start) % WIDTH].cast("I")


def _lowered(text: bytes) -> bytes:
    """Return `text` so that what is in it in any case is in the result in small letters."""
    low = text.lower()
    if not low.isascii():
        for letter, folded in _FOLDED:
            low = low.replace(letter, folded)
    return low


def _texts_of(regexes: tuple[str, ...], kept: Cache | None) -> Sequence[_Text]:
    if kept is None:
        return _texts(regexes)
    name = f"{kept_name('gate', regexes, (__file__, certain.__file__))}.json"
    with suppress(ValueError):  # damaged: it can be made again
        return loads(kept.load(name) or "", list[_Text])
    made = _texts(regexes)
    kept.store(name, dumps(made).encode())
    return made


@lru_cache(maxsize=2)
def _texts(regexes: tuple[str, ...]) -> Sequence[_Text]:
    """Return the texts of all signs that are sure to bear one that is long enough: of several the one that fewest are like."""
    often = _often(regexes)

    @cache
    def telling(words: bytes) -> int:
        return min(range(len(words) - WIDTH + 1), key=lambda at: often[words[at : at + WIDTH]])

    def rarity(words: bytes) -> int:
        at = telling(words)
        return -often[words[at : at + WIDTH]]

    def rarest(choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        long = [texts for texts in choices if min(map(len, texts)) >= WIDTH]
        return max(long, key=lambda texts: min(rarity(_lowered(text.encode())) for text in texts), default=())

    signs: dict[bytes, list[int]] = {}
    for number, regex in enumerate(regexes):
        for words in _sure(regex, rarest):
            signs.setdefault(words, []).append(number)
    return [_Text(words.decode(), telling(words), tuple(numbers)) for words, numbers in signs.items()]


def _often(regexes: Sequence[str]) -> Counter[bytes]:
    """Return of how many signs four bytes may be what tells them from the others."""
    often = Counter[bytes]()
    for regex in regexes:
        seen = set[str]()
        _sure(regex, _noting(seen))
        often.update({four for text in seen for four in _fours(_lowered(text.encode()))})
    return often


def _noting(seen: set[str]) -> Telling:
    def telling(choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        seen.update(text for texts in choices for text in texts)
        return most_telling(choices)

    return telling


def _fours(words: bytes) -> Iterator[bytes]:
    return (words[at : at + WIDTH] for at in range(len(words) - WIDTH + 1))


def _sure(regex: str, telling: Telling) -> Set[bytes]:
    """Return texts in small letters of which one stands wherever `regex` matches; none where not all are long enough."""
    flags, bare = _apart(regex)
    texts = certain_texts(bare, telling)
    found = set(_small(texts, flags))
    return found if all(len(each) >= WIDTH for each in found) else set()


def _needed(regex: str) -> Sequence[tuple[bytes, ...]]:
    """Return sets of texts in small letters, the longest first: wherever `regex` matches, one of each stands."""
    flags, bare = _apart(regex)
    found = (_small(texts, flags) for texts in all_certain_texts(bare))
    return sorted(filter(None, found), key=lambda texts: -min(map(len, texts)))


def _apart(regex: str) -> tuple[str, str]:
    """Return the flags of `regex`, and what is behind them."""
    flags = _FLAGS.match(regex)
    start = flags.end() if flags else 0
    return regex[:start], regex[start:]


def _small(texts: Sequence[str], flags: str) -> tuple[bytes, ...]:
    """Return `texts` in small letters; none where that is not sure to find them in any case."""
    return tuple(_lowered(text.encode()) for text in texts) if "i" not in flags or "".join(texts).isascii() else ()
