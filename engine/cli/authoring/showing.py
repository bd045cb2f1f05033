"""What a rule says before it meets a log: the incident of its first firing test."""

from __future__ import annotations

from engine.cli.rule_tests import incidents
from engine.dsl.rule_test import Tests
from engine.errors import UsageError
from engine.model.incidents import Incident
from engine.model.rules import Plan


def incident_of(id_: str, tests: Tests, plan: Plan) -> Incident | None:
    """Return the incident that the first firing test of `id_` ends in; None when none of its tests opens one."""
    firing = (test for test in tests[id_] if test.fires is not None)
    return next((incident for test in firing for incident in incidents(test, plan)), None)


def previewed(id_: str, tests: Tests, plan: Plan) -> Incident:
    """Return what `incident_of` does. Raises UsageError when there is nothing to show, and says why."""
    incident = incident_of(id_, tests, plan)
    if incident is not None:
        return incident
    if plan.rules()[id_].severity == "info":
        raise UsageError(f"`{id_}` is of severity info: it opens no incident, it serves other rules")
    raise UsageError(f"no test of `{id_}` opens an incident; give it one with `fires`, and see: tocsin rules test {id_}")
