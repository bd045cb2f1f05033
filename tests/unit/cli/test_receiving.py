from __future__ import annotations

import pytest

from engine.cli.receiving import check_receivers
from engine.config import Secret, SlackSettings
from engine.config.receivers import SLACK_API
from engine.errors import UsageError


def test_every_receiver_without_its_secret_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERE", "xoxb-1-2-3")
    names = {"first": "GONE_ONE", "second": "THERE", "third": "GONE_TWO"}
    settings = tuple(
        SlackSettings(name, "#alerts", Secret("env", variable), None, SLACK_API) for name, variable in names.items()
    )
    with pytest.raises(UsageError) as caught:
        check_receivers(settings)
    assert str(caught.value) == (
        "receiver first: env:GONE_ONE: the environment variable GONE_ONE is not set; "
        "receiver third: env:GONE_TWO: the environment variable GONE_TWO is not set"
    )
    check_receivers(settings[1:2])
