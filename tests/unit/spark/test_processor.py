"""State that cannot be read ends a run with a sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import TocsinError
from engine.spark.job import plan_file
from engine.spark.processor import ScopeProcessor
from tests.building import plan, signature


class Handle:
    """State of which every part says the same."""

    def __init__(self, body: str) -> None:
        self._body = body

    def getMapState(self, *_: str) -> Handle:
        return self

    def getValue(self, _: object) -> tuple[str]:
        return (self._body,)


@pytest.mark.parametrize("body", ["{", '{"of": "before"}', '["b.log"]'])
def test_state_of_another_version_is_told_with_its_folder(body: str, tmp_path: Path) -> None:
    processor = ScopeProcessor(str(plan_file(plan(signature("the-rule")), tmp_path)), bounded=True, checkpoint=str(tmp_path))
    processor.init(Handle(body))
    with pytest.raises(TocsinError, match=f"the state of main in the checkpoint {tmp_path} cannot be read.*remove that folder"):
        list(processor.handleInputRows(("main",), iter(()), None))
