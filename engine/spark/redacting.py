"""Redact records before they are matched: those of open events, which wait in the state or travel there.

Each record is redacted by itself and together with the line before, which may announce a secret. The event is redacted once
more after matching, so the result is the same whether it lay in one slice or in several. Three things need care here: the
identity of an event is made of its first line as printed (`Record.identity`), a line begins an event by its header, and a
private key goes on until its last line, wherever it was cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.match.redact import MASK
from engine.model.records import Block, Record
from engine.model.redaction import Redact
from engine.model.rules import Format
from engine.parse import decode_block
from engine.parse.headers import header_book

_KEY = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_ENDS = re.compile(r"-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY")
_KEY_BODY = re.compile(r"\s*[A-Za-z0-9+/]*={0,2}\s*")
_KEY_ATTRIBUTE = re.compile(r"[\w-]+: ")  # between the first line and the body (RFC 1421)
# a line of a key or certificate whose first line is missing: RFC 7468 has 64 characters in every line but the last
_KEY_LINE = re.compile(r"\s*(?:[A-Za-z0-9+/]{60,}={0,2}|[A-Za-z0-9+/]{16,}={1,2})\s*")
_KEY_MASK = "REDACTED"  # in the characters of a key body, so that the lines are still recognised as one key
_REST = re.compile(r"[^\s,;\"'})\]]+")


def redact_block(block: Block, formats: Sequence[Format], redact: Redact) -> Block:
    """Return `block` with redacted texts and the same number of records; the same object when it holds no secret.

    Redacting the result again, alone or with the records that follow, gives the same as redacting everything at once.
    """
    texts = list(_texts(block, redact))
    if all(text is record.text for text, record in zip(texts, block.records, strict=True)):
        return block
    records = (_with_text(record, text, formats, redact) for record, text in zip(block.records, texts, strict=True))
    return replace(block, records=tuple(records))


def _texts(block: Block, redact: Redact) -> Iterator[str]:
    """Yield the redacted text of each record of `block`; the same string object when a record holds no secret."""
    records = block.records
    if not _may_hold_secret(records, redact):
        yield from (record.text for record in records)
        return
    previous, separator = "", "\n"
    in_key, settled = False, not block.unsettled and block.headed  # else a key may have begun before the block
    for record in records:
        text = record.text
        key_begin = _KEY.search(text)
        if in_key and key_begin is None and (masked := _mask_key_line(text)) is not None:
            in_key = _KEY_ENDS.search(text) is None
        elif key_begin is not None and _KEY_ENDS.search(text, key_begin.end()) is None:
            in_key = settled = True
            masked = (
                redact(text[: key_begin.start()]) + key_begin.group() + (_KEY_MASK if text[key_begin.end() :].strip() else "")
            )
        elif not settled and _KEY_LINE.fullmatch(text):
            masked = _KEY_MASK
        else:
            in_key, settled = False, settled or bool(text.strip())
            masked = _redact_after(previous, separator, text, redact)
        yield text if masked == text else masked
        previous, separator = masked, "" if record.partial else "\n"


def _mask_key_line(text: str) -> str | None:
    """Return a line of a private key after its first one, masked; None when `text` is no such line."""
    if (end := _KEY_ENDS.search(text)) is not None:
        return (_KEY_MASK if text[: end.start()].strip() else "") + text[end.start() :]
    if _KEY_ATTRIBUTE.match(text) or not text.strip():
        return text
    return _KEY_MASK if _KEY_BODY.fullmatch(text) else None


def _may_hold_secret(records: Sequence[Record], redact: Redact) -> bool:
    """Return whether the records, redacted together, may hold a secret; for most blocks they do not."""
    whole = "".join(record.text if record.partial else f"{record.text}\n" for record in records)
    return redact(whole) is not whole or any(
        _KEY_LINE.fullmatch(record.text) or (record.partial and record.text.endswith(MASK)) for record in records
    )


def _redact_after(previous: str, separator: str, text: str, redact: Redact) -> str:
    """Return `text` redacted, with secrets that the line `previous` announces or, when a line was cut in two, begins."""
    if not separator and previous.endswith(MASK):
        text = _REST.sub("", text, count=1) if _REST.match(text) else text
    masked = redact(text)
    redacted_pair, prefix = redact(f"{previous}{separator}{masked}"), f"{previous}{separator}"
    return redacted_pair.removeprefix(prefix) if redacted_pair.startswith(prefix) else masked


def _with_text(record: Record, text: str, formats: Sequence[Format], redact: Redact) -> Record:
    """Return `record` with a redacted text that keeps its header, and with the identity of the event as printed."""
    if text == record.text:
        return record
    book = header_book(formats)
    layout = book.find(record.text)
    if book.find(text) is not layout:  # something in its header looked like a secret
        header = book.read(record.text)
        at = record.text.find(header.message) if header is not None and header.message else 0
        text = record.text[:at] + redact(record.text[at:])
    return replace(record, text=text, identity=record.identity or _identity(record, layout is not None, formats))


def _identity(record: Record, has_header: bool, formats: Sequence[Format]) -> str:
    return decode_block(Block((record,), headed=has_header or record.starts), formats)[0].event_id
