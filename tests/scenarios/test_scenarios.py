"""Every time line of this folder says at each moment exactly what it expects, and so does a correlator restored each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from engine.correlate import Correlator
from engine.incident import MemoryLedger, group
from engine.model.incidents import Alert, Incident
from engine.model.rules import Absence, Clear, Continues, Explains, Plan, Sooner, Stop
from tests.building import absence, broker, counting, plan, signature
from tests.scenarios.timeline import Expected, read, scenarios, written

HERE = Path(__file__).parent
GROUP = ("cluster", "group")
TASK = ("cluster", "task")

PLANS: Mapping[str, Plan] = {
    "storm": plan(
        signature("group-rebalanced", entity=GROUP, severity="info", collapse_s=30.0),
        counting(
            "group-rebalance-loop", ["group-rebalanced"], 4, 3600.0, entity=GROUP, clear=Clear(0, 1800.0), severity="medium"
        ),
        signature(
            "commit-failed",
            entity=GROUP,
            explains=(
                Explains(("group-rebalance-loop", "group-rebalanced"), {"cluster": "cluster", "group": "group"}, 7200.0, 600.0),
            ),
        ),
    ),
    "stages": plan(
        signature(
            "client-too-large",
            entity=TASK,
            severity="critical",
            explains=(Explains(("task-killed",), {"cluster": "cluster", "task": "task"}, 60.0, 600.0),),
        ),
        signature(
            "broker-too-large",
            entity=TASK,
            severity="critical",
            continues=(Continues("client-too-large", {"cluster": "cluster", "task": "task"}, 72 * 3600.0),),
        ),
        signature("task-killed", entity=TASK),
    ),
    "silence": plan(
        signature("lost", entity={"cluster": "cluster", "node": "node"}, severity="medium"),
        signature("back", severity="info"),
        signature("stopping", entity=("cluster", "broker"), severity="info"),
        absence(
            "broker-silent",
            Absence("broker", 0.0, Sooner(("lost",), {"broker": "node"}, 60.0, ("back",)), Stop(("stopping",), 120.0)),
            explains=(Explains(("lost",), {"cluster": "cluster", "broker": "node"}, 600.0, 3600.0),),
        ),
        absence(
            "broker-not-back",
            Absence("broker", 4 * 3600.0, after=Stop(("stopping",), 120.0)),
            severity="medium",
            explains=(Explains(("lost",), {"cluster": "cluster", "broker": "node"}, 600.0, 3600.0),),
        ),
        components=(broker(),),
    ),
}


@pytest.mark.parametrize("restored", [False, True], ids=["running", "restored"])
@pytest.mark.parametrize("path", list(scenarios(HERE)), ids=lambda path: path.stem)
def test_time_line(path: Path, restored: bool) -> None:
    told = read(path)
    made, ledger, state = PLANS[told.plan], MemoryLedger(), dict[str, str]()
    correlator = Correlator(made, "default", state)
    for step in told.steps:
        if not isinstance(step, Expected):
            correlator.observe(step)
            continue
        list(group(correlator.flush(), made, ledger))
        correlator = Correlator(made, "default", state) if restored else correlator
        _check(step, ledger, path)


def _check(step: Expected, ledger: MemoryLedger, path: Path) -> None:
    found = _incidents(step, ledger) if step.incident else _alerts(step, ledger)
    where = f"{path.name}:{step.line}"
    if step.words == "nothing":
        assert not found, f"{where}: {found}"
        return
    facts = [facts for words, facts in found if words == step.words]
    assert facts, f"{where}: expected {step.rule} {step.words}, said: {[words for words, _ in found] or 'nothing'}"
    wanted = dict(step.facts)
    assert any(wanted.items() <= each.items() for each in facts), f"{where}: expected {wanted}, said {facts}"


def _alerts(step: Expected, ledger: MemoryLedger) -> list[tuple[str, dict[str, str]]]:
    alerts = [alert for key, told in ledger.alerts("default").items() if key[1] == step.rule for alert in told]
    return [(_words(alert.key[2], alert.status), _facts(alert)) for alert in alerts]


def _incidents(step: Expected, ledger: MemoryLedger) -> list[tuple[str, dict[str, str]]]:
    incidents = [incident for incident in ledger.incidents("default") if incident.rule == step.rule]
    return [(_words(each.key[2], each.status), _facts_of_incident(each)) for each in incidents]


def _words(entity: Sequence[tuple[str, str]], status: str) -> str:
    return " ".join([*(value for label, value in entity if label != "cluster"), status])


def _facts(alert: Alert) -> dict[str, str]:
    told = {"severity": alert.severity, "count": str(alert.count)}
    return told | _times(since=alert.starts_at, until=alert.ends_at)


def _facts_of_incident(incident: Incident) -> dict[str, str]:
    symptoms = ",".join(sorted(f"{symptom.rule}:{symptom.count}" for symptom in incident.symptoms))
    told = {"severity": incident.severity, "count": str(incident.count), "symptoms": symptoms, "stage": incident.stage}
    return told | _times(since=incident.first_seen, until=incident.resolved_at)


def _times(**times: datetime | None) -> dict[str, str]:
    return {name: written(at) for name, at in times.items()}
