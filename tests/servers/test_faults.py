"""Faults provoked on a cluster of three brokers, and harmless events: what a scan of everybody's logs says of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.faults import FAULTS, judged, provoked

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.usefixtures("jars")]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_raises_exactly_what_it_should(name: str, tmp_path: Path) -> None:
    if FAULTS[name].layout.small_disk and os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    assert judged(provoked(tmp_path / name, FAULTS[name]), name) == []
