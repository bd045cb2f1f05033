"""A full disk under the checkpoint ends the run with one sentence; with space again it goes on where it ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rulepack.playing import plan
from tests.spark.finals import finals, lines, replay
from tests.spark.test_run import BROKER, configured, copied, kept

ROOT = Path(__file__).parents[2]
# A mount namespace of its own: nothing is mounted for anybody else, and no rights are needed. 400 KiB hold the rules only.
SCRIPT = """
mount -t tmpfs -o size=400k tmpfs "$1" || exit 9
"$2" -m engine.cli.main run -c "$3" --once; echo "first $?" >&2
mount -o remount,size=50m "$1"
"$2" -m engine.cli.main run -c "$3" --once; echo "second $?" >&2
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_when_there_is_space(tmp_path: Path) -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    logs, checkpoint = copied(tmp_path), tmp_path / "state.checkpoint"
    checkpoint.mkdir()
    command = ["unshare", "-rm", "sh", "-c", SCRIPT, "sh", checkpoint, sys.executable, configured(tmp_path, batch_lines=4)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, env=environment, check=False)
    first, _, rest = done.stderr.partition("first ")
    assert first.splitlines()[-1] == (
        f"tocsin: the job cannot write to {checkpoint}: No space left on device; mend that and start again:"
        " it goes on where it ended"
    )
    assert "Traceback" not in done.stderr
    assert (rest[0], done.stderr.splitlines()[-1]) == ("3", "second 1")
    assert finals(kept(tmp_path / "state.db")) == finals({i.id: i for i in replay(lines(logs, BROKER.name), plan())}.values())
