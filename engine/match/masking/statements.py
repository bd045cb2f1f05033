"""Finds secrets in SQL: in statements that create or alter users, in inserted rows, in arguments of encrypting functions."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch, names

_PLAIN = expression(r"\bidentified\s+by\s+(?:values\s+)?([^\s\"'`;,]+)", nocase=True)
_SET = expression(r"\bset\s+password\s+(?:for\s+\S+\s*)?=\s*(?:password\s*\(\s*)?'([^'\n]+)'", nocase=True)
_KEY = expression(
    r"\b(?:pgp_sym_(?:en|de)crypt\w*|aes_(?:en|de)crypt|(?:en|de)cryptby\w+|crypt|hmac)\s*\([^()\n]*?,\s*'([^'\n]+)'",
    nocase=True,
)
_INSERT = expression(
    r"\b(?:insert|replace|upsert|merge)\s+(?:ignore\s+)?into\s+[^\s(]+\s*\(([^()\n]+)\)\s*values?\s*\(", nocase=True
)
_LITERAL = expression(r"\s*(N?'(?:[^'\n]|'')*'|\"[^\"\n]*\"|[^,()'\"\n]*(?:\([^()\n]*\))?)\s*([,)]|$)")
_COLUMN = b" \t`\"'[]"


def statements(data: bytes) -> Iterator[Stretch]:
    """Yield the passwords and keys in SQL statements."""
    for hit in _PLAIN.finditer(data):
        if not (names.is_nothing(hit.group(1)) or names.is_wordy(hit.group(1))):
            yield hit.span(1)
    for shape in (_SET, _KEY):
        for hit in shape.finditer(data):
            if not names.is_nothing(hit.group(1)):
                yield hit.span(1)
    yield from _rows(data)


def _rows(data: bytes) -> Iterator[Stretch]:
    """Yield the values of inserted rows in columns that have the name of a secret."""
    for hit in _INSERT.finditer(data):
        at = hit.end()
        for column in hit.group(1).split(b","):
            value = _LITERAL.match(data, at)
            if value is None:
                break
            bare = value.group(1).strip(b"N'\"")
            if names.kind_of(column.strip(_COLUMN)) is not None and bare not in (b"", b"?") and not names.is_nothing(bare):
                yield value.span(1)
            at = value.end()
            if value.group(2) != b",":
                break
