"""The route tree takes the deepest branch that holds, and goes on only where told; silences mute."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from engine.model.routes import LabelMatcher, Route, Silence, Timings
from engine.route import muted_by, route, routing_labels
from tests.unit.cli.incidents import TOO_LARGE

FAST = Timings(0, 1, 2)
CONNECT = LabelMatcher("component", "=", "connect")
CRITICAL = LabelMatcher("severity", "=", "critical")
TREE = Route(
    "ops",
    routes=(
        Route("pager", (CRITICAL,), FAST, goes_on=True),
        Route(
            "data", (CONNECT,), routes=(Route("cdc", (LabelMatcher("connector", "=~", "cdc-.*"),)), Route("pager", (CRITICAL,)))
        ),
        Route("never", (CONNECT,)),
    ),
)
NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ({}, ["ops"]),
        ({"component": "broker"}, ["ops"]),
        ({"severity": "critical"}, ["pager"]),
        ({"component": "connect"}, ["data"]),
        ({"component": "connect", "connector": "cdc-1"}, ["cdc"]),
        ({"component": "connect", "connector": "cdc-1", "severity": "critical"}, ["pager", "cdc"]),
        ({"component": "connect", "severity": "critical"}, ["pager"]),
    ],
)
def test_who_is_told(labels: dict[str, str], receivers: list[str]) -> None:
    assert [target.receiver for target in route(labels, TREE)] == receivers


def test_the_first_route_to_a_receiver_gives_its_timings() -> None:
    (target,) = route({"component": "connect", "severity": "critical"}, TREE)
    assert target.timings == FAST


def test_matchers_see_labels_rule_severity_and_component() -> None:
    seen = routing_labels(TOO_LARGE)
    assert (seen["connector"], seen["rule"], seen["severity"]) == ("cdc-source", TOO_LARGE.rule, "critical")
    assert seen["component"] == "connect"


def test_a_silence_mutes_from_its_start_until_before_its_end() -> None:
    silence = Silence("s1", (CONNECT,), NOON, NOON + timedelta(hours=1))
    longer = replace(silence, id="s2", ends_at=NOON + timedelta(hours=2))
    labels = {"component": "connect"}
    assert muted_by(labels, [silence], NOON - timedelta(seconds=1)) is None
    assert muted_by(labels, [silence], NOON) is silence
    assert muted_by(labels, [silence, longer], NOON) is longer
    assert muted_by(labels, [silence], silence.ends_at) is None
    assert muted_by({"component": "broker"}, [silence], NOON) is None
