"""What ends a slice early, or at its end, costs nothing of what was read before."""

from collections.abc import Iterator

import pytest

from engine.errors import DataLoss, LateInput, SourceAway
from engine.ports import Chunk
from engine.spark.datasource import _up_to_loss

CHUNK = Chunk("a", 0, b"one\n")
LOSS, LATE = DataLoss("a", 3, 7, "gone"), LateInput("a", 2, 58, 60)


def ending(error: BaseException) -> Iterator[Chunk]:
    yield CHUNK
    raise error


@pytest.mark.parametrize(
    ("error", "losses", "late"),
    [
        (LOSS, [LOSS], []),
        (LATE, [], [LATE]),
        (ExceptionGroup("several", [LOSS, LATE]), [LOSS], [LATE]),
    ],
)
def test_losses_and_late_lines_are_taken_and_the_chunks_stay(
    error: BaseException, losses: list[DataLoss], late: list[LateInput]
) -> None:
    taken: tuple[list[DataLoss], list[LateInput]] = ([], [])
    assert list(_up_to_loss(ending(error), *taken)) == [CHUNK]
    assert taken == (losses, late)


def test_what_is_away_is_raised() -> None:
    with pytest.raises((SourceAway, ExceptionGroup)):
        list(_up_to_loss(ending(SourceAway("a", "away")), [], []))
