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
MOST_TEXT = 3_000  # top-level text; Slack cuts at 40,000, a push message far earlier
MOST_IN_HEADER = 150
MOST_IN_SECTION = 3_000
MOST_IN_LINK = 3_000
_ELLIPSIS = "…"


def characters(value: Any) -> int:
    """Return the number of characters of texts and addresses in a block or a list of blocks."""
    if isinstance(value, Mapping):
        return sum(len(v) if k in ("text", "url") and isinstance(v, str) else characters(v) for k, v in value.items())
    return sum(characters(item) for item in value) if isinstance(value, list | tuple) else 0


def cut(text: str, limit: int) -> str:
    """Return `text` with at most `limit` characters, the last one an ellipsis when something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + _ELLIPSIS


def fitted(blocks: Sequence[SlackBlock], instead: Sequence[SlackBlock]) -> list[SlackBlock]:
    """Return the first blocks that fit into one message, followed by `instead` when some are left out."""
    if len(blocks) <= MOST_BLOCKS and characters(blocks) <= MOST_CHARACTERS:
        return list(blocks)
    remaining = MOST_CHARACTERS - characters(instead)
    fitting: list[SlackBlock] = []
    for block in blocks[: MOST_BLOCKS - len(instead)]:
        remaining -= characters(block)
        if remaining < 0:
            break
        fitting.append(block)
    return [*fitting, *instead]


def breaches(text: str, blocks: Sequence[SlackBlock]) -> list[str]:
    """Return a sentence for each limit that a message exceeds; empty when Slack accepts it."""
    violations = [] if text else ["the message has no top-level text"]
    if len(blocks) > MOST_BLOCKS:
        violations.append(f"{len(blocks)} blocks, at most {MOST_BLOCKS}")
    if (size := characters(blocks)) > MOST_CHARACTERS:
        violations.append(f"{size} characters, at most {MOST_CHARACTERS}")
    return [*violations, *(sentence for block in blocks for sentence in _of_block(block))]


def _of_block(block: SlackBlock) -> Iterator[str]:
    limit = {"header": MOST_IN_HEADER, "section": MOST_IN_SECTION}.get(block["type"])
    if limit is not None and len(block["text"]["text"]) > limit:
        yield f"a {block['type']} of {len(block['text']['text'])} characters, at most {limit}"
    for text in _texts(block):
        if not text:
            yield f"an empty text in a {block['type']}"


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
