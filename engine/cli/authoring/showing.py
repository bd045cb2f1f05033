"""Preview a rule without a log: the incident of its first firing test."""

from __future__ import annotations

from engine.cli.rule_tests import incidents
from engine.dsl.rule_test import Tests
from engine.errors import UsageError
from engine.model.incidents import Incident
from engine.model.rules import Plan


def incident_of(id_: str, tests: Tests, plan: Plan) -> Incident | None:
    """Return the incident of the first firing test of `id_` that opens one; None when no test does."""
    firing = (test for test in tests[id_] if test.fires is not None)
    return next((incident for test in firing for incident in incidents(test, plan)), None)


def preview_incident(id_: str, tests: Tests, plan: Plan) -> Incident:
    """Return the incident of `incident_of`. Raises UsageError, with the reason, when there is none."""
    incident = incident_of(id_, tests, plan)
    if incident is not None:
        return incident
    if plan.rules()[id_].severity == "info":
        raise UsageError(f"`{id_}` is of severity info: it opens no incident, it serves other rules")
    raise UsageError(f"no test of `{id_}` opens an incident; give it one with `fires`, and see: tocsin rules test {id_}")
