"""The failures that clients share are known in the words of the clients in other languages too, and as nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.rulepack.playing import plan
from tests.rulepack.reading import rules_of

NOTHING = "nothing"
# what client-connection-not-back is made of, which address it is, and what only names a group or a topic for others
SIGNS = {
    "client-all-down",
    "client-bootstraps",
    "client-bootstraps-node",
    "client-connect-refused",
    "client-connection-closed",
    "client-names-group",
    "client-names-topic",
}
WORDS = yaml.load((Path(__file__).parent / "clients.yml").read_text(encoding="utf-8"), yaml.CSafeLoader)
CASES = [(rule, client, text) for rule, texts in WORDS.items() for client, text in texts.items()]


@pytest.mark.parametrize(("rule", "client", "text"), CASES, ids=[f"{rule}: {client}" for rule, client, _ in CASES])
def test_a_client_is_understood(rule: str, client: str, text: str) -> None:
    assert matched()[text] - SIGNS == ({rule} - {NOTHING})


@cache
def matched() -> Mapping[str, set[str]]:
    """Return the rules that match each text."""
    return rules_of({text: (text, {}) for *_, text in CASES}, plan())
