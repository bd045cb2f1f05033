"""The picture of an incident as PNG, where the extra `picture` is installed and the machine has a font.

resvg draws text only in a font that it is told and that the machine has; it leaves out text that it has no font for.
"""

from __future__ import annotations

from functools import cache

from engine.model.incidents import Incident
from engine.picture.describing import describe
from engine.picture.drawing import draw

SCALE = 2  # pixels of the PNG for one of the drawing
# those that are as wide as the drawing assumes come first
FAMILIES = (
    "Liberation Sans",
    "Arial",
    "Helvetica",
    "Noto Sans",
    "Open Sans",
    "Roboto",
    "DejaVu Sans",
    "FreeSans",
    "Noto Sans CJK KR",
)
_WHITE = "#ffffff"
_SAMPLE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
_SAMPLE_TEXT = '<text x="2" y="15" font-family="sans-serif" font-size="12">M</text>'


def png_of(incident: Incident) -> bytes | None:
    """Return the picture of `incident` as PNG on white; None where there is no picture of it, or none can be drawn here."""
    picture = describe(incident)
    if picture is None or why_no_png():
        return None
    try:
        return _png(draw(picture), _family())
    except ValueError:  # resvg's error
        return None


@cache
def why_no_png() -> str:
    """Return why no picture can be drawn on this machine; empty where it can."""
    try:
        import resvg_py  # noqa: F401, PLC0415 - the package is optional
    except ImportError:
        return "the package resvg_py is not installed: pip install 'tocsin[picture]'"
    return "" if _family() else f"this machine has no font that can be drawn; install one of {', '.join(FAMILIES[:4])}"


@cache
def _family() -> str:
    """Return the first of FAMILIES in which text is drawn; empty when there is none."""
    blank = _png(_SAMPLE.format(""), FAMILIES[0])
    sample = _SAMPLE.format(_SAMPLE_TEXT)
    return next((family for family in FAMILIES if _png(sample, family) != blank), "")


def _png(svg: str, family: str) -> bytes:
    from resvg_py import svg_to_bytes  # noqa: PLC0415 - the package is optional

    return bytes(svg_to_bytes(svg_string=svg, background=_WHITE, zoom=SCALE, font_family=family, sans_serif_family=family))
