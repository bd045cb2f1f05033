"""Rison as Kibana writes it."""

from __future__ import annotations

import pytest

from engine.model.rison import Rison, rison


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "!n"),
        (True, "!t"),
        (False, "!f"),
        (0, "0"),
        (-12, "-12"),
        ("kuery", "kuery"),
        ("", "''"),
        ("9a", "'9a'"),
        ("two\nlines", "'two\nlines'"),
        ("it's!", "'it!'s!!'"),
        ("logs-*", "'logs-*'"),
        ([], "!()"),
        ({}, "()"),
        (
            {"query": {"language": "kuery", "query": "a: b"}, "on": [1, True]},
            "(query:(language:kuery,query:'a: b'),on:!(1,!t))",
        ),
    ],
)
def test_values(value: Rison, text: str) -> None:
    assert rison(value) == text
