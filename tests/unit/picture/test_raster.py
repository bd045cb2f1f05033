"""The picture as PNG: drawn with its text, and left out where it cannot be drawn."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
import resvg_py

from engine.model.incidents import AlertCourse, Incident
from engine.picture import WIDE, png_of, raster, why_no_png
from tests.unit.cli.incidents import AT, incident

COURSE = AlertCourse(
    "root", "broker-silent", "Broker 1 went silent", "critical", AT, AT + timedelta(hours=2), None, 1, {"broker": "1"}
)
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def silent() -> Incident:
    return incident(course=(COURSE,), is_silence=True)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    why_no_png.cache_clear()
    raster._family.cache_clear()
    yield
    why_no_png.cache_clear()
    raster._family.cache_clear()


def test_a_picture_is_drawn_twice_as_wide_as_on_the_page() -> None:
    png = png_of(silent())
    assert png is not None and png.startswith(SIGNATURE)
    width, height = struct.unpack(">II", png[16:24])
    assert width == WIDE * raster.SCALE
    assert 100 < height < 2 * width


def test_an_incident_without_times_has_none() -> None:
    assert png_of(incident()) is None


@pytest.mark.usefixtures("asked_anew")
def test_without_the_package_there_are_none_and_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert why_no_png() == "the package resvg_py is not installed: pip install 'tocsin[picture]'"
    assert png_of(silent()) is None


@pytest.mark.usefixtures("asked_anew")
def test_without_a_font_there_are_none_rather_than_pictures_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True))
    assert why_no_png().startswith("this machine has no font that can be drawn; install one of Liberation Sans, Arial")
    assert png_of(silent()) is None
