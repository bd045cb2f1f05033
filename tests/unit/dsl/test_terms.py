"""Terms stand for their texts."""

from __future__ import annotations

from pathlib import Path

from engine.dsl import lint, load, load_pack
from engine.match.matcher import Matcher
from tests.building import event
from tests.unit.dsl.writing import rule, write


def test_terms_stand_for_their_texts_with_any_modifier(tmp_path: Path) -> None:
    (tmp_path / "_terms.yml").write_text("lost: ['gone {n:int}', away]\nlevels: ERROR\n")
    body = "detection: {seen: {text|term: lost, level|contains|term: levels}, condition: seen}"
    matcher = Matcher(load([write(tmp_path, one=rule("one", body))]))
    said = [("gone 3", "ERROR"), ("away", "ERROR"), ("away", "INFO"), ("lost", "ERROR")]
    assert [bool(matcher.match_event(event(text, level=level))) for text, level in said] == [True, True, False, False]


def library(folder: Path, **texts: str) -> Path:
    """Write each text as `terms/<name>.yml` below `folder` and return the folder."""
    (folder / "terms").mkdir()
    write(folder / "terms", **texts)
    return folder


def test_the_wordings_of_a_library_are_named_with_it(tmp_path: Path) -> None:
    library(tmp_path, kafkajs="closed: ['Closed connection to {address:hostport}']", sarama="closed: ['EOF']")
    body = "detection: {seen: {text|term: [kafkajs.closed, sarama.closed]}, condition: seen}"
    matcher = Matcher(load([write(tmp_path, one=rule("one", body))]))
    texts = ("Closed connection to a:9092", "EOF", "Closed")
    assert [[dict(match.captures) for match in matcher.match_event(event(text))] for text in texts] == [
        [{"address": "a:9092", "host": "a", "port": "9092"}],
        [{}],
        [],
    ]


def test_a_term_that_no_file_defines_is_told_with_the_nearest(tmp_path: Path) -> None:
    library(tmp_path, kafkajs="closed: [Closed]")
    body = "detection: {seen: {text|term: kafkajs.close}, condition: seen}"
    [finding] = load_pack([write(tmp_path, one=rule("one", body))]).errors()
    assert (finding.code, "kafkajs.closed" in finding.help) == ("TOC310", True)


def test_a_term_that_no_rule_uses_is_found_where_it_stands(tmp_path: Path) -> None:
    library(tmp_path, kafkajs="closed: [Closed]\nrefused: [Refused]")
    body = "detection: {seen: [{text|contains|term: kafkajs.closed}], condition: seen}"
    [finding] = [found for found in lint([write(tmp_path, one=rule("one", body))]) if found.code == "TOC617"]
    assert (Path(finding.path).name, finding.line, "kafkajs.refused" in finding.message) == ("kafkajs.yml", 2, True)


def test_a_term_is_defined_once(tmp_path: Path) -> None:
    library(tmp_path, kafkajs="closed: [Closed]")
    (tmp_path / "_terms.yml").write_text("kafkajs.closed: [Other]\n")
    body = "detection: {seen: {text|term: kafkajs.closed}, condition: seen}"
    assert [finding.code for finding in load_pack([write(tmp_path, one=rule("one", body))]).errors()] == ["TOC501"]
