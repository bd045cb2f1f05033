"""What every test may use: golden files, and a cache of compiled rules that is not the user's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tocsin", deadline=None, print_blob=True)  # speed is for make bench: a busy machine fails no test
settings.load_profile("tocsin")

GOLDEN = Path(__file__).parent / "golden"


def pytest_configure(config: pytest.Config) -> None:
    os.environ["XDG_CACHE_HOME"] = str(config.rootpath / ".pytest_cache" / "xdg")  # compiled rules: not the user's


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare text with a file of tests/golden; `make accept` (TOCSIN_ACCEPT=1) writes the file instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("TOCSIN_ACCEPT") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"tests/golden/{name} differs; see make accept"

    return compare
