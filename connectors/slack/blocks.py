"""Blocks of a Slack message.

All text is in plain_text or rich_text elements, which Slack shows literally: text of logs cannot format, link or mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from connectors.slack.limits import MOST_IN_HEADER, MOST_IN_ID, MOST_IN_LINK, SlackBlock, cut
from engine.model.acts import ActKind
from engine.model.incidents import Incident
from engine.model.links import Link
from engine.model.phrases import moment
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked

MOST_IN_PIECE = 2_500  # characters of prose or code in one block; longer text is divided
_LONGEST_LINE_LINK = 1_000  # characters of an address beside a line of evidence: they count for the whole message
ACTIONS = "tocsin-act"  # begins the id of a row of buttons that act
_ACTS = dict(
    zip((ActKind.ACKNOWLEDGE, ActKind.SILENCE, ActKind.RESOLVE), marked("Acknowledge", "Silence 2 h", "Resolve"), strict=True)
)
_BUTTONS = dict(zip(("incident", "incidents", "audit", "kibana"), marked("Page", "Page", "Page", "Logs"), strict=True))


def header(text: str) -> SlackBlock:
    """Return a headline, cut to Slack's limit."""
    return {"type": "header", "text": {"type": "plain_text", "text": cut(text, MOST_IN_HEADER), "emoji": False}}


def paragraph(elements: Iterable[SlackBlock]) -> SlackBlock:
    """Return a block with one paragraph of rich text `elements`."""
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}


def with_code(elements: Iterable[SlackBlock], code: str) -> SlackBlock:
    """Return a block with a paragraph, and `code` below it."""
    preformatted = {"type": "rich_text_preformatted", "elements": [word(code)]}
    return {"type": "rich_text", "elements": [*paragraph(elements)["elements"], preformatted]}


def word(text: str, bold: bool = False) -> SlackBlock:
    """Return an element of rich text; a blank for empty text, which Slack refuses."""
    return {"type": "text", "text": text or " ", **({"style": {"bold": True}} if bold else {})}


def time(at: datetime, words: Words = ENGLISH) -> SlackBlock:
    """Return an element that shows a time in the zone of each reader."""
    shown_as = words("{date_short_pretty} at {time_secs}")
    return {"type": "date", "timestamp": int(at.timestamp()), "format": shown_as, "fallback": moment(at)}


def named_prose(name: str, text: str, links: Sequence[Link] = (), words: Words = ENGLISH) -> Iterator[SlackBlock]:
    """Yield paragraphs with all of `text`: the first starts with `name` in bold and ends with the first of `links` that is
    short. Nothing when there is no text."""
    for number, piece in enumerate(_pieces(visible(text))):
        if number:
            yield paragraph([word(piece)])
            continue
        short_links = [link for link in links if len(link.url) <= _LONGEST_LINE_LINK][:1]
        more = [part for x in short_links for part in (word("  "), {"type": "link", "url": x.url, "text": words(x.title)})]
        yield paragraph([word(f"{name}  ", bold=True), word(piece), *more])


def code_blocks(code: str) -> Iterator[SlackBlock]:
    """Yield blocks with all of `code`, line by line; nothing when it is blank."""
    lines = visible_lines(code)
    for piece in _pieces(lines) if lines.strip() else ():
        yield {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [word(piece)]}]}


def visible_lines(code: str) -> str:
    """Return `code` with what a reader cannot see made visible, except its line ends."""
    return "\n".join(visible(line) for line in code.split("\n"))


def addresses(name: str, urls: Iterable[str]) -> Iterator[SlackBlock]:
    """Yield a paragraph of links to `urls`, those that are web addresses; nothing without one."""
    links = [url for url in urls if url.startswith(("https://", "http://")) and len(url) <= MOST_IN_LINK]
    for url in links:
        yield paragraph([word(f"{name}  ", bold=True), {"type": "link", "url": url}])


def buttons(links: Iterable[Link], acting: Incident | None = None, words: Words = ENGLISH) -> Iterator[SlackBlock]:
    """Yield a row of buttons: those that act on `acting`, if given, and those that open `links`; an address too long for Slack
    gets none, the incident's page has it. The id of the row names the edition that the message shows."""
    row = [_button(link, words) for link in links if link.kind in _BUTTONS and len(link.url) <= MOST_IN_LINK]
    block_id = f"{ACTIONS}:{acting.id}:{acting.edition}" if acting is not None else ""
    if acting is not None and len(block_id) <= MOST_IN_ID:
        kinds = [kind for kind in _ACTS if not (kind is ActKind.ACKNOWLEDGE and acting.status == "acknowledged")]
        yield {"type": "actions", "block_id": block_id, "elements": [*(_act_button(kind, words) for kind in kinds), *row]}
    elif row:
        yield {"type": "actions", "elements": row}


def footnote(text: str) -> SlackBlock:
    """Return a line of small text."""
    return {"type": "context", "elements": [{"type": "plain_text", "text": text, "emoji": False}]}


def _button(link: Link, words: Words) -> SlackBlock:
    title = {"type": "plain_text", "text": words(_BUTTONS[link.kind])}
    return {"type": "button", "action_id": f"open-{link.kind}", "text": title, "url": link.url}


def _act_button(kind: ActKind, words: Words) -> SlackBlock:
    style = {"style": "primary"} if kind is ActKind.ACKNOWLEDGE else {}
    return {"type": "button", "action_id": kind.value, "text": {"type": "plain_text", "text": words(_ACTS[kind])}, **style}


def _pieces(text: str) -> list[str]:
    return [text[at : at + MOST_IN_PIECE] for at in range(0, len(text), MOST_IN_PIECE)]
