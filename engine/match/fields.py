"""The fields of an event for the tests of rules, as UTF-8 bytes; each is encoded once, when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.records import LogEvent
from engine.model.signs import folded

Values = tuple[bytes, ...]


class Fields:
    """The fields of one event by name: text, message, level, logger, thread, exception, labels, `labels.<name>`.

    Only two fields have several values: exception (a chain, outermost first) and `labels` (all of them, as name=value).
    `signs`: those signs that the prefilter finds in the text; the matcher sets them.
    """

    __slots__ = ("_cache", "_event", "_folded", "signs", "text")

    def __init__(self, event: LogEvent) -> None:
        self._event = event
        self.signs: frozenset[str] = frozenset()
        self.text = encoded(event.text)
        self._folded: bytes | None = None
        self._cache: dict[str, Values] = {"text": (self.text,)}

    def has_any(self, signs: Sequence[bytes]) -> bool:
        """Tell whether one of `signs` (engine/model/signs) stands in the text."""
        folded_text = self._folded
        if folded_text is None:
            folded_text = self._folded = folded(self.text)
        return any(sign in folded_text for sign in signs)

    def values(self, field: str) -> Values:
        """Return the values of `field`; empty ones are left out."""
        values = self._cache.get(field)
        if values is None:
            values = self._cache[field] = tuple(encoded(text) for text in self._texts(field) if text)
        return values

    def casefolded(self, field: str) -> Values:
        """Return the values of `field` case-folded, for comparisons that ignore case."""
        return tuple(casefolded(value) for value in self.values(field))

    def _texts(self, field: str) -> tuple[str, ...]:
        labels = self._event.labels
        if field == "exception":
            return self._event.exception
        if field == "labels":
            return tuple(f"{name}={value}" for name, value in sorted(labels.items()))
        if field.startswith("labels."):
            return (labels.get(field.removeprefix("labels."), ""),)
        return (getattr(self._event, field),)


def encoded(text: str) -> bytes:
    """Return `text` as UTF-8; a character that cannot be encoded (a lone surrogate) becomes `?`."""
    return text.encode("utf-8", "replace")


def casefolded(value: bytes) -> bytes:
    """Return UTF-8 text case-folded."""
    return value.decode("utf-8", "replace").casefold().encode()
