"""The picture of an incident: what happened to whom, when. A pure description, its drawing as SVG, and the same in words.

Imports the model only, so that pages, reports and receivers may all draw it.
"""

from engine.picture.describing import Deed, describe
from engine.picture.description import Lane, Mark, Picture
from engine.picture.drawing import NARROW, WIDE, draw
from engine.picture.raster import png_of, why_no_png
from engine.picture.strips import day_strip, sparkline

__all__ = [
    "NARROW",
    "WIDE",
    "Deed",
    "Lane",
    "Mark",
    "Picture",
    "day_strip",
    "describe",
    "draw",
    "png_of",
    "sparkline",
    "why_no_png",
]
