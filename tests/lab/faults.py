"""Faults provoked on a real cluster, one at a time, and harmless events; each with the logs that everybody leaves.

What tocsin must say of each stands in `tests/captured/<name>/expected.yml`, whether the logs are fresh or those kept there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.cli.intake import Intake
from engine.cli.triage import triage
from tests.lab import broker_faults, client_faults, connect_faults, library_faults, quorum_faults
from tests.lab.fault import Fault
from tests.lab.running import say
from tests.lab.scene import scene
from tests.rulepack.playing import plan, unlike
from tests.servers.jars import all_jars

CAPTURED = Path(__file__).parents[1] / "captured"
LAB = Path(__file__).parents[2] / ".lab"
RUNS_S = 20
_KINDS = (broker_faults, client_faults, connect_faults, library_faults, quorum_faults)
FAULTS: Mapping[str, Fault] = {name: fault for kind in _KINDS for name, fault in kind.FAULTS.items()}


def faults(folder: Path, names: Sequence[str] = (), runs_s: float = RUNS_S) -> list[str]:
    """Provoke the faults of these names, all without one, and return what tocsin says that it should not; one sentence each."""
    wrong: list[str] = []
    for name in names or FAULTS:
        say(f"{name}: three brokers, a producer and two consumers")
        logs = provoked(folder / name, FAULTS[name], runs_s)
        said = judged(logs, name)
        say(f"{name}: {'; '.join(said) or 'as it should be'}")
        wrong += [f"{name}: {sentence}" for sentence in said]
    return wrong


def provoked(folder: Path, fault: Fault, runs_s: float = RUNS_S) -> Path:
    """Provoke a fault on a cluster of its own; return the folder with the logs as they were before anything was ended.

    Raises NoJars.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with scene(all_jars(fault.layout.kafka), folder, fault.layout, runs_s) as made:
        try:
            fault.provoke(made)
        finally:
            made.leave_logs(folder / "logs")
    return folder / "logs"


def judged(logs: Path, name: str) -> list[str]:
    """Scan a folder of logs; return in what the answer is not as expected of the fault `name`, one sentence each."""
    answer = triage(Intake([str(logs)], {}).chunks(), plan(), [])
    return unlike([*answer.incidents, *answer.pending], CAPTURED / name)
