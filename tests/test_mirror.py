"""Every file of tests/unit is named after the module that it tests, or is a scenario: so the name of a file finds a test.

The tests of `engine/correlate/counts.py` are `tests/unit/correlate/test_counts.py`, those of `connectors/files/source.py`
`tests/unit/connectors/files/test_source.py`, those of a package (`engine/match/__init__.py`) `tests/unit/match/test_match.py`.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"
SCENARIOS = {  # files of tests about what several modules do together
    "config/test_diagnostics.py": "every mistake of tocsin.yml that any module of the package reports, beside golden files",
    "connectors/test_carriers.py": "the same documents by Kafka and by Elasticsearch, from the connector to the incident",
    "connectors/files/test_histories.py": "random histories of logs: rotation, kills, jumps of the clock",
    "connectors/files/test_special.py": "pipes, devices, NULs and endless lines, from finding to reading",
    "connectors/slack/test_stories.py": "the messages of the stories, from their logs to the thread, beside golden files",
    "correlate/test_any_order.py": "the same verdicts for any order of input, of every correlation type",
    "correlate/test_order.py": "the same verdicts for any order, batches and restarts, with bindings and clocks",
    "correlate/test_remembering.py": "the same verdicts after restarts and days without input",
    "deliver/test_acted_on.py": "what people did, from the store to the receiver",
    "deliver/test_clock_jumps.py": "waits, retries and silences while the wall clock jumps",
    "deliver/test_floods.py": "thousands of incidents at once, from the store to the receiver",
    "deliver/test_histories.py": "random histories of failures, kills and locks: everything told once",
    "deliver/test_holding_back.py": "a time line of silences, mute intervals and backfill",
    "deliver/test_slack_delivery.py": "one message for an incident, against the stand-in for Slack",
    "deliver/test_store_away.py": "deliveries while the store is locked or gone",
    "dsl/test_diagnostics.py": "every mistake of a rule file that any module of the package reports, beside golden files",
    "dsl/test_fuzz.py": "damaged rule files and expressions, through the whole loader",
    "incident/test_crowds.py": "storms of many entities, through linking, grouping and deciding",
    "parse/test_excerpts.py": "published excerpts, through the whole stage, beside golden files",
    "parse/test_formats.py": "the examples of the shipped layouts, beside golden files",
    "parse/test_fuzz.py": "damaged lines, through the whole stage",
    "parse/test_pasted.py": "what people paste, through the whole stage",
    "parse/test_slices.py": "a stream cut anywhere and joined again, through the whole stage",
    "parse/test_wrapped.py": "one broker line in every wrapper, through the whole stage",
    "columns/test_origins.py": "the origin of a line, through every fast path",
    "test_secrets_stay_in.py": "planted secrets, from the log to every output",
}


def test_every_file_is_named_after_a_module_or_is_a_scenario() -> None:
    files = {path.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py")}
    assert sorted(files - mirrors() - SCENARIOS.keys()) == [], "name it after a module, or add it to SCENARIOS with a reason"


def test_every_scenario_exists_and_is_named_after_no_module() -> None:
    assert [name for name in SCENARIOS if not (UNIT / name).exists()] == []
    assert sorted(SCENARIOS.keys() & mirrors()) == []


def mirrors() -> frozenset[str]:
    """Return where the tests of each module belong, relative to tests/unit."""
    roots = {ROOT / "engine": ROOT / "engine", ROOT / "connectors": ROOT}
    return frozenset(_mirror(path.relative_to(root)) for folder, root in roots.items() for path in folder.rglob("*.py"))


def _mirror(module: Path) -> str:
    """Return where the tests of a module belong; those of a package are in its own folder."""
    name = module.parent.name if module.stem == "__init__" else module.stem
    return (module.parent / f"test_{name}.py").as_posix()
