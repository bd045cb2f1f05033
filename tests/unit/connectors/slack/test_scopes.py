"""What a Slack app may not do is told with the scope that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from connectors.slack.scopes import SCOPES, missing_rights

MANIFEST = Path(__file__).parents[4] / "docs" / "slack-app.yml"
TWICE = "channel a message whose answer was lost is posted twice"


def test_the_manifest_asks_for_all_that_is_used_and_no_more() -> None:
    manifest = yaml.safe_load(MANIFEST.read_text("utf-8"))
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == sorted(SCOPES)


@pytest.mark.parametrize(
    ("granted", "channel", "sentences"),
    [
        (SCOPES, "#kafka-ops", []),
        (SCOPES[1:], "#kafka-ops", ["the app has no scope chat:write: it can send nothing"]),
        (
            ("chat:write", "groups:read", "groups:history"),
            "#kafka-ops",
            [f"the app has neither scope channels:read nor channels:history: in a public {TWICE}"],
        ),
        (("chat:write", "channels:history", "groups:history"), "C0123", []),
        (
            ("chat:write", "channels:history", "channels:read", "groups:read"),
            "C0123",
            [f"the app has no scope groups:history: in a private {TWICE}"],
        ),
    ],
)
def test_each_missing_scope_is_told_with_what_it_switches_off(
    granted: tuple[str, ...], channel: str, sentences: list[str]
) -> None:
    assert list(missing_rights(granted, channel)) == sentences
