"""Versions are compared with bounds as far as the bound goes."""

import pytest

from engine.correlate.versions import within, written


@pytest.mark.parametrize(
    ("version", "bounds", "holds"),
    [
        ("2.6.1", ((("<=", "2.6")),), True),
        ("2.7.0", ((("<=", "2.6")),), False),
        ("2.6.1", (((">", "2.6")),), False),
        ("2.6.1", ((("==", "2.6")),), True),
        ("2.6.1", ((("!=", "2.6")),), False),
        ("3", (((">=", "3.0")),), True),
        ("10.0", (((">=", "9.1")),), True),
        ("3.4.0-cp1", (((">=", "2.1")), (("<", "4"))), True),
        ("v0.8.2", ((("<", "0.9")),), True),
        ("unknown", ((("<", "0.9")),), True),
        ("1.0", (), True),
    ],
)
def test_versions_are_compared_as_far_as_the_bound_goes(version: str, bounds: tuple[tuple[str, str], ...], holds: bool) -> None:
    assert within(version, bounds) is holds


def test_bounds_are_written_as_in_a_rule() -> None:
    assert written(((">=", "2.1"), ("<", "4.1"))) == ">=2.1,<4.1"
