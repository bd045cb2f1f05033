"""The names of settings that lint knows are those of Kafka's own classes."""

from __future__ import annotations

import os

import pytest

from engine.dsl.settings import settings_by_level
from tests.servers.jars import NoJars
from tests.servers.settings import CLASSES, VERSIONS, settings_of

NEWEST = list(VERSIONS)[-1]


def test_the_newest_version_defines_what_the_data_says() -> None:
    try:
        defined = settings_of(NEWEST)
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))
    assert {
        level: {name for name, span in settings_by_level()[level].items() if span[-1] == NEWEST} for level in CLASSES
    } == defined
