"""The limits of one Slack message. The SDK does not check raw blocks, and Slack refuses a message as a whole.

Source: slack_sdk/models/blocks for the limits of one block. That all blocks together must stay below about 13,200 characters
is documented nowhere (slackapi/bolt-js issue 2509); 12,000 keeps a distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

SlackBlock = dict[str, Any]

MOST_BLOCKS = 45  # Slack: 50
MOST_CHARACTERS = 12_000
MOST_SHOWN_BLOCKS, MOST_SHOWN = 10, 1_500  # of the message of an incident: our own limits, so that it is read
MOST_TEXT = 3_000  # top-level text beside blocks: a push message is cut far earlier
MOST_PLAIN = 40_000  # top-level text without blocks: Slack cuts what is longer
MOST_IN_HEADER = 150
MOST_IN_SECTION = 3_000
MOST_IN_LINK = 3_000
MOST_IN_BUTTON = 75
MOST_IN_ID = 255  # of a block or an action
MOST_BUTTONS = 25
MOST_IN_CONTEXT = 10  # elements
MOST_ROWS, MOST_CELLS = 100, 20  # of a table, and of one of its rows
_ELLIPSIS = "…"


def characters(value: Any) -> int:
    """Return the number of characters of texts and addresses in a block or a list of blocks."""
    if isinstance(value, Mapping):
        return sum(len(v) if k in ("text", "url") and isinstance(v, str) else characters(v) for k, v in value.items())
    return sum(characters(item) for item in value) if isinstance(value, list | tuple) else 0


def cut(text: str, limit: int) -> str:
    """Return `text` with at most `limit` characters, the last one an ellipsis when something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + _ELLIPSIS


def shown_characters(value: Any) -> int:
    """Return the number of characters that a reader sees in blocks: addresses behind texts do not count."""
    if isinstance(value, Mapping):
        own = ("text", "fallback") if value.get("type") == "date" else ("text",)
        address = len(value["url"]) if value.get("type") == "link" and "text" not in value else 0
        return address + sum(len(v) if k in own and isinstance(v, str) else shown_characters(v) for k, v in value.items())
    return sum(shown_characters(item) for item in value) if isinstance(value, list | tuple) else 0


def paged(blocks: Iterable[SlackBlock], most_pages: int) -> tuple[list[list[SlackBlock]], int]:
    """Divide blocks into messages that Slack accepts, at most `most_pages`; return them, and how many blocks are left out.

    The last page has room for one short block more.
    """
    pages: list[list[SlackBlock]] = []
    size, omissions = 0, 0
    for block in blocks:
        length = characters(block)
        if not pages or len(pages[-1]) >= MOST_BLOCKS - 1 or size + length > MOST_CHARACTERS - MOST_IN_HEADER:
            if len(pages) == most_pages:
                omissions += 1
                continue
            pages.append([])
            size = 0
        if omissions:
            omissions += 1  # what follows a gap would look as if nothing were missing
            continue
        pages[-1].append(block)
        size += length
    return pages, omissions


def breaches(text: str, blocks: Sequence[SlackBlock], attachments: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return a sentence for each limit that a message exceeds; empty when Slack accepts it."""
    violations = [] if text else ["the message has no top-level text"]
    if len(text) > MOST_PLAIN:
        violations.append(f"a text of {len(text)} characters, at most {MOST_PLAIN}")
    all_blocks = [*blocks, *(block for attachment in attachments for block in attachment.get("blocks", ()))]
    if len(all_blocks) > MOST_BLOCKS:
        violations.append(f"{len(all_blocks)} blocks, at most {MOST_BLOCKS}")
    if (size := characters(all_blocks)) > MOST_CHARACTERS:
        violations.append(f"{size} characters, at most {MOST_CHARACTERS}")
    return [*violations, *(sentence for block in all_blocks for sentence in _of_block(block))]


def _of_block(block: SlackBlock) -> Iterator[str]:
    kind = block["type"]
    limit = {"header": MOST_IN_HEADER, "section": MOST_IN_SECTION}.get(kind)
    if limit is not None and len(block["text"]["text"]) > limit:
        yield f"a {kind} of {len(block['text']['text'])} characters, at most {limit}"
    most = {"actions": MOST_BUTTONS, "context": MOST_IN_CONTEXT}.get(kind)
    if most is not None and not 1 <= len(block["elements"]) <= most:
        yield f"{len(block['elements'])} elements in a block of type {kind}, at least 1 and at most {most}"
    rows = block.get("rows", ())
    if kind == "table" and not (1 <= len(rows) <= MOST_ROWS and all(1 <= len(row) <= MOST_CELLS for row in rows)):
        yield f"a table of {len(rows)} rows, at most {MOST_ROWS} with {MOST_CELLS} cells each"
    for element in block.get("elements", ()):
        if element["type"] == "button":
            yield from _of_button(element)
    for date in _dates(block):
        if not isinstance(date.get("timestamp"), int) or "{" not in str(date.get("format", "")):
            yield "a date without a whole timestamp or a format"
    for text in _texts(block):
        if not text:
            yield f"an empty text in a {kind}"


def _of_button(button: SlackBlock) -> Iterator[str]:
    for what, length, most in (
        ("text", len(button["text"]["text"]), MOST_IN_BUTTON),
        ("address", len(button.get("url", "")), MOST_IN_LINK),
        ("action_id", len(button.get("action_id", "")), MOST_IN_ID),
    ):
        if length > most:
            yield f"a button's {what} of {length} characters, at most {most}"


def _dates(value: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if value.get("type") == "date":
            yield value
        for inner in value.values():
            yield from _dates(inner)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _dates(item)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
