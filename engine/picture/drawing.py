"""Draw a picture as SVG: no script, no style of its own, every text escaped.

Shapes have classes for the style sheet of a page, and colours as attributes for what reads an SVG without one. A mark that has
a line of evidence is a link to it; a mark's title is its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct
from msgspec.structs import replace

from engine.model.phrases import moment
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words
from engine.picture.description import BACK, BEATS, RESOLVED, ROOT, SILENCE, STAGE, SYMPTOM, Lane, Mark, Picture
from engine.picture.scale import Scale

WIDE, NARROW = 1040, 358
_ROW, _PAD, _AXIS = 22, 7, 30
_CHARACTER, _BOLD = 6.4, 7.1  # average width of one at 12 px
_ROOT_HEIGHT = 44  # room for the name and `root cause` below it
_NAMES = 186  # width of the names of lanes, where they stand beside the lanes
_STACKED = 600  # below this width names stand above the lanes
_MERGED = 11.0  # events closer than this are one dot with their number
_MOST_LABEL = 46
_MOST_ROWS = 12  # of a lane; further marks share the last
_COLOURS = {"critical": "#b00020", "high": "#b93a06", "medium": "#7d5a00", "low": "#1d5fa8", "info": "#4b5563"}
_QUIET, _ALIVE, _LINE, _TEXT = "#555b61", "#0b7a4b", "#d3d7db", "#1a1c1e"

MarkTarget = Callable[[Mark], str]


class _PlacedMark(Struct, frozen=True):
    """A mark with its row in the lane, and where its label stands: its x (-1: in the row above), and whether it ends there."""

    mark: Mark
    row: int
    label: str
    label_x: float
    ends: bool


def draw(
    picture: Picture,
    width: int = WIDE,
    target: MarkTarget = lambda mark: "",
    name: str = "picture",
    words: Words = ENGLISH,
) -> str:
    """Return the picture as one SVG element of `width` pixels, as high as it needs.

    Args:
        target: returns the address that a mark leads to, such as `#line-1`; empty for none.
        name: a prefix of the ids in it, unique on a page.
        words: the language of the picture.
    """
    return _Drawing(picture, width, target, name, words).svg()


class _Drawing:
    def __init__(self, picture: Picture, width: int, target: MarkTarget, name: str, words: Words) -> None:
        self._picture, self._width, self._target, self._name, self._words = picture, width, target, name, words
        self._stacked = width < _STACKED
        self._left = 10.0 if self._stacked else float(_NAMES)
        self._right = width - 14.0
        marks = [mark for lane in picture.lanes for mark in lane.marks]
        times = [at for mark in marks for at in (mark.begin, mark.end or picture.end, *mark.times)]
        lasts = any(mark.end is None for mark in marks) or bool(picture.later)
        self._scale = Scale([picture.begin, picture.end, *times], self._left + 10, self._right - (26 if lasts else 8))

    def svg(self) -> str:
        """Return the whole element."""
        y, lanes = float(_AXIS), list[str]()
        for lane in self._picture.lanes:
            drawn, height = self._lane(lane, y)
            lanes.append(drawn)
            y += height
        words = self._words
        label = f"{self._picture.title}: {words('timeline of {number} lanes', number=len(self._picture.lanes))}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="group" aria-label={_attribute(label)}'
            f' viewBox="0 0 {self._width} {_n(y + 6)}" width="{self._width}" height="{_n(y + 6)}"'
            f' font-family="system-ui, sans-serif" font-size="12">\n'
            f'<defs><pattern id="{self._name}-hatch" width="7" height="7" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate(45)"><rect class="hatch" width="2.5" height="7" fill="{self._colour()}"/>'
            f"</pattern></defs>\n"
            f"{self._axis(y)}{''.join(lanes)}</svg>\n"
        )

    def _colour(self) -> str:
        return _COLOURS.get(self._picture.severity, _QUIET)

    def _axis(self, bottom: float) -> str:
        begin, end = self._picture.begin, self._picture.end
        root = next((m.begin for lane in self._picture.lanes for m in lane.marks if m.kind in (SILENCE, ROOT)), begin)
        is_long = begin.date() != end.date()
        ticks = self._scale.ticks([root, end, begin], 98 if is_long else 76)
        parts = []
        for at in ticks:
            x = self._scale.x(at)
            anchor = "start" if x < self._left + 40 else "end" if x > self._right - 40 else "middle"
            text = f"{at:%d %b %H:%M:%S}" if is_long else f"{at:%H:%M:%S}"
            weight = ' font-weight="600"' if at == root else ""
            parts.append(
                f'<line class="grid" x1="{_n(x)}" y1="20" x2="{_n(x)}" y2="{_n(bottom)}" stroke="{_LINE}"/>'
                f'<text class="stamp" x="{_n(x)}" y="13" text-anchor="{anchor}" font-size="11"{weight}'
                f' fill="{_QUIET}">{text}</text>\n'
            )
        return "".join(parts)

    def _lane(self, lane: Lane, y: float) -> tuple[str, float]:
        """Return a lane drawn from `y` on, and its height."""
        top = y + (20 if self._stacked else 0)
        placed = list(self._placed(lane.marks))
        rows = 1 + max((item.row for item in placed), default=0)
        has_later = lane is self._picture.lanes[-1] and bool(self._picture.later)
        rows += has_later and bool(placed)
        height = max(top - y + rows * _ROW + 2 * _PAD, _ROOT_HEIGHT if lane.is_root else 0)
        band = f'<rect class="lane{" root" if lane.is_root else ""} {self._picture.severity}" x="0" y="{_n(y)}"'
        tint = f'fill="{self._colour()}" fill-opacity="0.08"' if lane.is_root else 'fill="none"'
        words = self._words
        parts = [
            f"<g><title>{_text(lane.name)}{', ' + words('the root cause') if lane.is_root else ''}</title>"
            f'{band} width="{self._width}" height="{_n(height)}" {tint}/>'
            f'<line class="grid" x1="0" y1="{_n(y + height)}" x2="{self._width}" y2="{_n(y + height)}" stroke="{_LINE}"/></g>\n'
        ]
        parts.append(self._lane_name(lane, y))
        parts += [self._mark(item, top + _PAD + item.row * _ROW + _ROW / 2) for item in placed]
        if has_later:
            parts.append(self._later(top + _PAD + (rows - 0.5) * _ROW))
        return "".join(parts), height

    def _lane_name(self, lane: Lane, y: float) -> str:
        edge = f'<rect class="edge {self._picture.severity}" x="0" y="{_n(y)}" width="4" height="30" fill="{self._colour()}"/>'
        room = int((self._width - 90 if self._stacked else _NAMES - 20) / 8.4)
        name = _cut(lane.name, room)
        weight = "600" if lane.is_root else "400"
        drawn = (
            f'<text class="name" x="12" y="{_n(y + 19)}" font-weight="{weight}" font-size="13"'
            f' fill="{_TEXT}">{_text(name)}</text>'
        )
        if not lane.is_root:
            return f"{drawn}\n"
        words = self._words
        x, below, anchor = (self._width - 10, 19, "end") if self._stacked else (12, 34, "start")
        tag = (
            f'<text class="tag {self._picture.severity}" x="{x}" y="{_n(y + below)}" text-anchor="{anchor}" font-size="11"'
            ' font-weight="600"'
        )
        return f'{edge}{drawn}{tag} fill="{self._colour()}">{words("root cause")}</text>\n'

    def _placed(self, marks: Sequence[Mark]) -> Iterator[_PlacedMark]:
        """Yield every mark with its row: the first row in which neither it nor its label meets another."""
        rows: list[list[tuple[float, float]]] = []
        for mark in marks:
            placed, taken = self._labelled(mark)
            above = int(placed.label_x < 0)  # the label needs a row of its own
            row = next((n for n in range(len(rows)) if _is_free(rows[n : n + 1 + above], taken)), len(rows))
            row = min(row, _MOST_ROWS - 1)
            while len(rows) <= row + above:
                rows.append([])
            for spans in rows[row : row + 1 + above]:
                spans.append(taken)
            yield replace(placed, row=row + above)

    def _labelled(self, mark: Mark) -> tuple[_PlacedMark, tuple[float, float]]:
        """Return a mark with its label where there is room for it, to the right, to the left or above, and what both take."""
        begin, end = self._place(mark)
        if mark.kind in (BEATS, BACK, RESOLVED):
            half = 3 if mark.kind == BEATS else 9
            return _PlacedMark(mark, 0, "", end, False), (begin - half, end + half)
        if mark.kind == SILENCE:
            return _PlacedMark(mark, 0, "", end, False), (begin + 4, end - 12)
        per = _BOLD if mark.kind == ROOT else _CHARACTER
        most = _MOST_LABEL if not self._stacked else 40
        wanted = _cut(mark.label, most)
        right, left = self._right - end - 10, begin - 18 - self._left
        room = max(right, left)
        if room < min(_columns(wanted), 24) * per:
            label = _cut(mark.label, int((self._right - self._left) / per))
            return _PlacedMark(mark, 0, label, -1, False), (min(begin - 10, self._left), self._right)
        if right >= _columns(wanted) * per or right >= left:
            label = _cut(wanted, int(right / per))
            return _PlacedMark(mark, 0, label, end + 14, False), (begin - 12, end + 22 + _columns(label) * per)
        label = _cut(wanted, int(left / per))
        return _PlacedMark(mark, 0, label, begin - 14, True), (begin - 22 - _columns(label) * per, end + 10)

    def _place(self, mark: Mark) -> tuple[float, float]:
        return self._scale.x(mark.begin), self._right if mark.end is None else self._scale.x(mark.end)

    def _mark(self, item: _PlacedMark, y: float) -> str:
        mark = item.mark
        begin, end = self._place(mark)
        shape = {SILENCE: self._gap, BEATS: self._beats}.get(mark.kind, self._course)
        drawn = shape(mark, begin, end, y)
        if item.label and mark.kind != SILENCE:
            anchor = "end" if item.ends else "start"
            weight = ' font-weight="600"' if mark.kind == ROOT else ""
            x, dy = (self._left + 8, 4 - _ROW) if item.label_x < 0 else (item.label_x, 4)
            drawn += (
                f'<text class="label" x="{_n(x)}" y="{_n(y + dy)}" text-anchor="{anchor}"{weight}'
                f' fill="{_TEXT}">{_text(item.label)}</text>'
            )
        return self._linked(mark, drawn)

    def _linked(self, mark: Mark, drawn: str) -> str:
        """Return shapes with the sentence of their mark; as a link where it leads to something."""
        address, words = self._target(mark), f"{moment(mark.begin)}: {mark.sentence}"
        title = f"<title>{_text(words)}</title>"
        if not address:
            return f'<g class="mark {mark.kind} {mark.severity}">{title}{drawn}</g>\n'
        return (
            f'<a class="mark {mark.kind} {mark.severity}" href={_attribute(address)} aria-label={_attribute(words)}>'
            f"{title}{drawn}</a>\n"
        )

    def _gap(self, mark: Mark, begin: float, end: float, y: float) -> str:
        colour = _COLOURS.get(mark.severity, _QUIET)
        width = max(end - begin, 3)
        border = f'stroke="{colour}" stroke-width="1.5"'
        words = self._words
        if mark.end:
            span = words("silent for {span}", span=words.span(mark.end - mark.begin))
        else:
            span = words("silent since {time}", time=f"{mark.begin:%H:%M:%S}")
        caption_text = next((text for text in (span, words("silent")) if _columns(text) * _BOLD <= width - 30), "")
        plate = _columns(caption_text) * _BOLD + 10
        caption = (
            f'<rect class="plate" x="{_n(begin + 14)}" y="{_n(y - 8)}" width="{_n(plate)}" height="16" rx="3" fill="#ffffff"/>'
            f'<text class="label" x="{_n(begin + 19)}" y="{_n(y + 4)}" font-weight="600" fill="{_TEXT}">{caption_text}</text>'
        )
        return (
            f'<rect class="gap" x="{_n(begin)}" y="{_n(y - 10)}" width="{_n(width)}" height="20" rx="2" {border}'
            f' fill="url(#{self._name}-hatch)"/>{caption if caption_text else ""}{_diamond(begin, y, colour)}'
        )

    def _beats(self, mark: Mark, _begin: float, _end: float, y: float) -> str:
        ticks = "".join(f"M{_n(x)} {_n(y - 6)}v12" for x in dict.fromkeys(map(self._scale.x, mark.times)))
        return f'<path class="beat" d="{ticks}" stroke="{_ALIVE}" stroke-width="2" fill="none"/>'

    def _course(self, mark: Mark, begin: float, end: float, y: float) -> str:
        colour = _COLOURS.get(mark.severity, _QUIET)
        if mark.kind in (BACK, RESOLVED):
            return (
                f'<circle class="alive" cx="{_n(begin)}" cy="{_n(y)}" r="7.5" fill="{_ALIVE}"/>'
                f'<path class="tick" d="M{_n(begin - 3.5)} {_n(y)}l2.5 2.8 4.5-5" fill="none" stroke="#ffffff"'
                ' stroke-width="1.8"/>'
            )
        if mark.kind not in (ROOT, STAGE, SYMPTOM):
            return (
                f'<rect class="deed" x="{_n(begin - 5)}" y="{_n(y - 5)}" width="10" height="10" rx="2" fill="#ffffff"'
                f' stroke="{_QUIET}" stroke-width="1.8"/>'
            )
        bar = ""
        if end - begin > 1:
            height = 12 if mark.is_storm else 4
            bar = (
                f'<rect class="span {mark.severity}" x="{_n(begin)}" y="{_n(y - height / 2)}" width="{_n(end - begin)}"'
                f' height="{height}" rx="2" fill="{colour}" fill-opacity="{"0.75" if mark.is_storm else "0.35"}"/>'
            )
        if mark.is_storm:
            return bar + _dot((begin + end) / 2, y, mark.count, mark.severity, colour)
        dots = self._dots(mark)
        if mark.kind == ROOT:
            (x, number), *dots = dots
            bar += _diamond(x, y, colour, number)
        return bar + "".join(_dot(x, y, number, mark.severity, colour) for x, number in dots)

    def _dots(self, mark: Mark) -> list[tuple[float, int]]:
        """Return where dots stand, and how many events each is: those that would touch are one."""
        places = [self._scale.x(at) for at in (mark.times or (mark.begin,))]
        if len(places) < 2:
            return [(places[0], mark.count)]
        groups: list[list[float]] = []
        for x in places:
            if groups and x - groups[-1][-1] < _MERGED:
                groups[-1].append(x)
            else:
                groups.append([x])
        return [(sum(group) / len(group), len(group)) for group in groups]

    def _later(self, y: float) -> str:
        count = len(self._picture.later)
        first = self._picture.later[0]
        each = "; ".join(f"{moment(mark.begin)}: {mark.sentence}" for mark in self._picture.later)
        words = self._words
        title = f"{words('{number} later', number=count)}: {each}"
        at = f"{words('{number} later, first {time}', number=count, time=_day(first.begin))} \u00bb"
        return (
            f'<g class="mark later"><title>{_text(title)}</title><text class="quiet" x="{_n(self._right)}" y="{_n(y + 4)}"'
            f' text-anchor="end" fill="{_QUIET}">{_text(at)}</text></g>\n'
        )


def _dot(x: float, y: float, count: int, severity: str, colour: str) -> str:
    if count < 2:
        return f'<circle class="dot {severity}" cx="{_n(x)}" cy="{_n(y)}" r="5" fill="{colour}"/>'
    text = f"{count:,}"
    width = max(16, 8 + 6.8 * len(text))
    return (
        f'<rect class="dot {severity}" x="{_n(x - width / 2)}" y="{_n(y - 8)}" width="{_n(width)}" height="16" rx="8"'
        f' fill="{colour}"/><text class="count" x="{_n(x)}" y="{_n(y + 4)}" text-anchor="middle" font-size="11"'
        f' font-weight="600" fill="#ffffff">{text}</text>'
    )


def _diamond(x: float, y: float, colour: str, count: int = 1) -> str:
    """Return the mark of a root, with how many events it is where there are several."""
    half = 10 if count < 2 else 12
    drawn = (
        f'<path class="rootmark" d="M{_n(x)} {_n(y - half)}l{half} {half}-{half} {half}-{half}-{half}z" fill="{colour}"'
        ' stroke="#ffffff" stroke-width="1.5"/>'
    )
    if count < 2:
        return drawn
    text = str(count) if count < 100 else "99+"
    return (
        f'{drawn}<text class="count" x="{_n(x)}" y="{_n(y + 3.5)}" text-anchor="middle" font-size="{9 if count < 100 else 7}"'
        f' font-weight="600" fill="#ffffff">{text}</text>'
    )


def _is_free(rows: Sequence[Sequence[tuple[float, float]]], span: tuple[float, float]) -> bool:
    return all(span[1] <= begin or end <= span[0] for row in rows for begin, end in row)


def _columns(text: str) -> int:
    """Return the width of `text` in Latin characters; Hangul and other wide characters are two each."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _cut(text: str, most: int) -> str:
    """Return `text`, cut where it is wider than `most` columns."""
    if _columns(text) <= most:
        return text
    kept = next(n for n in range(len(text)) if _columns(text[: n + 1]) > most - 1)
    return text[:kept].rstrip() + "…" if most > 5 else ""


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _text(text: str) -> str:
    return escape(visible(text))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def _n(number: float) -> str:
    """Return a number with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")
