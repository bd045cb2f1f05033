"""The section `audit`."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import load
from engine.errors import ConfigError
from engine.risks.judging import AcceptedRisk

LEAST = "sources: [{type: files, paths: [a.log]}]\n"


def accepted(folder: Path, text: str) -> tuple[AcceptedRisk, ...]:
    (folder / "tocsin.yml").write_text(LEAST + text)
    return load(folder / "tocsin.yml").accepted_risks


def test_without_the_section_nothing_is_accepted(tmp_path: Path) -> None:
    assert accepted(tmp_path, "") == ()


def test_an_entry_has_checks_patterns_and_a_reason(tmp_path: Path) -> None:
    text = (
        'audit: {ignore: [{checks: [one-rack], topics: ["tmp.*"], groups: [g], reason: can be rebuilt},'
        " {checks: [even-voters], reason: two sites}]}\n"
    )
    assert accepted(tmp_path, text) == (
        AcceptedRisk("can be rebuilt", ("one-rack",), {"topic": ("tmp.*",), "group": ("g",)}),
        AcceptedRisk("two sites", ("even-voters",)),
    )


def test_a_digest_has_a_receiver_and_a_time_of_the_day(tmp_path: Path) -> None:
    receivers = "receivers: [{name: ops, terminal: {}}]\n"

    def digest(text: str) -> tuple[str, int] | None:
        (tmp_path / "tocsin.yml").write_text(LEAST + receivers + text)
        return load(tmp_path / "tocsin.yml").audit_digest

    assert digest("") is None
    assert digest("audit: {digest: {receiver: ops}}\n") == ("ops", 480)
    assert digest('audit: {digest: {receiver: ops, at: "22:30"}}\n') == ("ops", 1350)


RECORD = "receivers: [{name: kept, elasticsearch: {url: 'http://es:9200'}}, {name: ops, terminal: {}}]\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("audit: {ignore: [{topics: [a]}]}", "reason"),
        ("audit: {ignore: [{checks: [one-rak], reason: x}]}", "`one-rak` is not a check of the audit"),
        ("audit: {ignore: [{reason: x}]}", "accepts every risk of every cluster"),
        ("audit: {ignore: [{checks: [], topics: [], reason: x}]}", "accepts every risk of every cluster"),
        ("audit: {ignores: []}", "ignores"),
        ("audit: {digest: {receiver: nobody}}", "`nobody` is no receiver"),
        (f"{RECORD}audit: {{digest: {{receiver: kept}}}}", "`kept` keeps a record of incidents, and a digest is none"),
        ('audit: {digest: {receiver: terminal, at: "25:00"}}', "`25:00` is not a time of the day"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        accepted(tmp_path, text + "\n")
    assert sentence in "".join(finding.render() for finding in raised.value.diagnostics)
