"""A receiver in memory, which most tests of the notifier have incidents told to."""

from __future__ import annotations

import pytest

from connectors.memory import MemoryReceiver


@pytest.fixture
def ops() -> MemoryReceiver:
    return MemoryReceiver()
