"""The plan of a batch that was not done can be taken out of a checkpoint; one that is in the store, or done, never is."""

from pathlib import Path

from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.plans import at_work, forget_plan, query_id


def checkpoint(folder: Path, planned: int, done: int) -> Path:
    for name, last in (("offsets", planned), ("commits", done)):
        (folder / name).mkdir(parents=True)
        for batch in range(last + 1):
            (folder / name / str(batch)).write_text("v1")
            (folder / name / f".{batch}.crc").write_text("crc")
    return folder


def plans(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "offsets").iterdir())


def test_the_plan_of_the_batch_that_was_not_done_is_taken_out_with_its_checksum(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, planned=10, done=9)
    assert forget_plan(LocalCheckpoint(folder), lambda batch: batch < 10) == 10
    assert {"9", ".9.crc"} <= set(plans(folder))
    assert not {"10", ".10.crc"} & set(plans(folder))


def test_a_batch_that_is_in_the_store_keeps_its_plan(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, planned=1, done=0)
    before = plans(folder)
    assert forget_plan(LocalCheckpoint(folder), lambda batch: batch == 1) == 1
    assert plans(folder) == before


def test_what_the_first_batch_left_of_its_state_goes_with_its_plan_and_that_of_others_stays(tmp_path: Path) -> None:
    for planned, left in ((0, False), (3, True)):
        folder = checkpoint(tmp_path / str(planned), planned=planned, done=planned - 1)
        (folder / "state" / "0").mkdir(parents=True)
        forget_plan(LocalCheckpoint(folder), lambda batch: False)
        assert (folder / "state").exists() == left


def test_what_is_done_or_was_never_planned_is_left_alone(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, planned=2, done=2)
    before = plans(folder)
    assert forget_plan(LocalCheckpoint(folder), lambda batch: False) == 3
    assert plans(folder) == before
    assert forget_plan(LocalCheckpoint(tmp_path / "nothing yet"), lambda batch: False) == 0


def test_a_batch_is_at_work_from_its_plan_to_its_commit(tmp_path: Path) -> None:
    assert at_work(LocalCheckpoint(tmp_path / "nothing yet")) is None
    assert at_work(LocalCheckpoint(checkpoint(tmp_path / "first", planned=0, done=-1))) == 0
    assert at_work(LocalCheckpoint(checkpoint(tmp_path / "later", planned=12, done=11))) == 12
    assert at_work(LocalCheckpoint(checkpoint(tmp_path / "idle", planned=12, done=12))) is None


def test_a_query_is_known_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"0b9c"}')
    assert query_id(LocalCheckpoint(tmp_path)) == "0b9c"
