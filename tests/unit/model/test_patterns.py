"""Names are chosen by patterns."""

from __future__ import annotations

import pytest

from engine.model.patterns import fits


@pytest.mark.parametrize(
    ("names", "patterns", "chosen"),
    [
        (["kafka-1"], ["kafka-*"], True),
        (["kafka-1"], ["connect", "kafka-?"], True),
        (["Kafka-1"], ["kafka-*"], False),
        (["kafka-1"], [], True),
        ([], [], True),
        ([], ["*"], False),
        (["kafka-ui"], ["kafka-*", "!kafka-ui"], False),
        (["sidecar"], ["!kafka-ui"], True),
        ([], ["!kafka-ui"], True),
        (["init.scope", "kafka.service"], ["kafka.service"], True),
        (["init.scope", "kafka.service"], ["!init.scope"], False),
    ],
)
def test_a_name_is_chosen_by_a_pattern_that_fits_and_none_that_leaves_it_out(
    names: list[str], patterns: list[str], chosen: bool
) -> None:
    assert fits(names, patterns) is chosen
