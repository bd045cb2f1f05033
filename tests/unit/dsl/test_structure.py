from __future__ import annotations

import pytest
import yaml

from engine.dsl.structure import as_list


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("iostat -x 5", ["iostat", "-x", "5"]),
        ("grep 'a b' /var/log/x", ["grep", "a b", "/var/log/x"]),
        ("kafka-topics.sh --describe --topic {topic}", ["kafka-topics.sh", "--describe", "--topic", "{topic}"]),
        ("say 'open", ["say", "'open"]),
    ],
)
def test_the_cure_for_a_command_in_one_text_is_the_list_of_its_words(command: str, words: list[str]) -> None:
    assert yaml.safe_load(as_list(command).removeprefix("write ")) == words
