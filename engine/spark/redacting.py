"""Taking secrets out of what is not matched yet: records that wait in the state, or on their way there, for their event's rest.

A record is redacted line by line, and with the line before it, which may announce a secret. What it is part of is redacted once
more when it has been matched, so that the end is the same whether an event lay in one slice or in several. Three things would
not survive and are seen to here: an event is known by its first line as it was printed (`Record.identity`), a line begins an
event by its header, and a private key goes on until its end, wherever it was cut.
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
# a line of a key or certificate whose beginning is nowhere: RFC 7468 has 64 characters in each but the last one
_KEY_LINE = re.compile(r"\s*(?:[A-Za-z0-9+/]{60,}={0,2}|[A-Za-z0-9+/]{16,}={1,2})\s*")
_KEY_MASK = "REDACTED"  # in the letters of a key, so that all of it is still seen to be one
_REST = re.compile(r"[^\s,;\"'})\]]+")


def redacted(block: Block, formats: Sequence[Format], redact: Redact) -> Block:
    """Return `block` without secrets in the texts of its records, as many as there were; the same object when it holds none.

    Redacting it again, or together with records that follow, gives what all of it at once would give.
    """
    texts = list(_texts(block, redact))
    if all(text is record.text for text, record in zip(texts, block.records, strict=True)):
        return block
    records = (_with_text(record, text, formats, redact) for record, text in zip(block.records, texts, strict=True))
    return replace(block, records=tuple(records))


def _texts(block: Block, redact: Redact) -> Iterator[str]:
    """Yield the redacted text of each record of `block`; of one without secrets its own."""
    records = block.records
    if not _suspicious(records, redact):
        yield from (record.text for record in records)
        return
    before, joint = "", "\n"
    in_key, begun = False, not block.unsettled and block.headed  # elsewhere a key may have begun before the first line
    for record in records:
        text = record.text
        begins = _KEY.search(text)
        if in_key and begins is None and (masked := _in_key(text)) is not None:
            in_key = _KEY_ENDS.search(text) is None
        elif begins is not None and _KEY_ENDS.search(text, begins.end()) is None:
            in_key = begun = True
            masked = redact(text[: begins.start()]) + begins.group() + (_KEY_MASK if text[begins.end() :].strip() else "")
        elif not begun and _KEY_LINE.fullmatch(text):
            masked = _KEY_MASK
        else:
            in_key, begun = False, begun or bool(text.strip())
            masked = _after(before, joint, text, redact)
        yield text if masked == text else masked
        before, joint = masked, "" if record.partial else "\n"


def _in_key(text: str) -> str | None:
    """Return a line of a private key behind its first one without its secret; None when it is none."""
    if (end := _KEY_ENDS.search(text)) is not None:
        return (_KEY_MASK if text[: end.start()].strip() else "") + text[end.start() :]
    if _KEY_ATTRIBUTE.match(text) or not text.strip():
        return text
    return _KEY_MASK if _KEY_BODY.fullmatch(text) else None


def _suspicious(records: Sequence[Record], redact: Redact) -> bool:
    """Tell whether a look at all of it finds anything, which for most it does not."""
    whole = "".join(record.text if record.partial else f"{record.text}\n" for record in records)
    return redact(whole) is not whole or any(
        _KEY_LINE.fullmatch(record.text) or (record.partial and record.text.endswith(MASK)) for record in records
    )


def _after(before: str, joint: str, text: str, redact: Redact) -> str:
    """Return `text` without its secrets, those included that the line `before` it announces or, cut in two, begins."""
    if not joint and before.endswith(MASK):
        text = _REST.sub("", text, count=1) if _REST.match(text) else text
    masked = redact(text)
    both, head = redact(f"{before}{joint}{masked}"), f"{before}{joint}"
    return both.removeprefix(head) if both.startswith(head) else masked


def _with_text(record: Record, text: str, formats: Sequence[Format], redact: Redact) -> Record:
    """Return `record` with a redacted text that begins an event where its own does, and the identity of that event."""
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
