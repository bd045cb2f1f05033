"""The receiver of type slack: what its app token needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Secret, SlackSettings, load
from engine.errors import ConfigError

LEAST = "sources: [{type: files, paths: [a.log]}]\nreceivers:\n  - {name: ops, slack: {%s}}\n"


def test_an_app_token_is_a_reference_like_the_others(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(LEAST % "channel: '#a', token: 'env:T', app_token: 'file:keys/app'")
    (receiver,) = load(path).receivers
    assert isinstance(receiver, SlackSettings)
    assert receiver.app_token == Secret("file", f"{tmp_path}/keys/app")


@pytest.mark.parametrize(
    ("keys", "finding"),
    [
        ("webhook_url: 'env:U', app_token: 'env:A'", "`app_token` needs `channel` and `token`: a webhook can only post"),
        ("channel: '#a', token: 'env:T', app_token: xapp-1-secret", "must not hold the secret itself"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, keys: str, finding: str) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(LEAST % keys)
    with pytest.raises(ConfigError, match=finding) as caught:
        load(path)
    assert "xapp-1-secret" not in str(caught.value)
