"""What a rule says before it meets a log: the incident of its first firing test."""

from __future__ import annotations

from engine.cli.rule_tests import incidents
from engine.cli.rulebook import with_layouts
from engine.dsl.pack import Pack
from engine.errors import UsageError
from engine.model.incidents import Incident
from engine.model.rules import Plan


def incident_of(pack: Pack, id_: str, plan: Plan | None = None) -> Incident | None:
    """Return the incident that the first firing test of `id_` ends in; None when none of its tests opens one."""
    ready = plan or with_layouts(pack.plan)
    firing = (test for test in pack.tests[id_] if test.fires is not None)
    return next((incident for test in firing for incident in incidents(test, ready)), None)


def previewed(pack: Pack, id_: str) -> Incident:
    """Return what `incident_of` does. Raises UsageError when there is nothing to show, and says why."""
    incident = incident_of(pack, id_)
    if incident is not None:
        return incident
    if pack.plan.rules()[id_].severity == "info":
        raise UsageError(f"`{id_}` is of severity info: it opens no incident, it serves other rules")
    raise UsageError(f"no test of `{id_}` opens an incident; give it one with `fires`, and see: tocsin rules test {id_}")
