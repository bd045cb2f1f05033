"""Signs are in every line that bears a wrapper, and what columns cut off is what the parser takes off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
import re2

from engine.columns.wrapping import PREFIXES, Prefix, order, sign
from engine.model.records import Record
from engine.parse import wrappers
from tests.rulepack.playing import SAMPLES
from tests.wrapping import DOCUMENTS, ROWS, wrapped

TESTS = Path(__file__).parents[2]


@cache
def lines() -> frozenset[str]:
    """Lines of all kinds: of samples and captured logs, of posts, of layouts' examples; and some behind every wrapper."""
    texts = [
        path for root in (SAMPLES, TESTS / "corpus", TESTS.parent / "rules") for path in root.rglob("*.*") if path.is_file()
    ]
    read = {line.strip(" '\"-") for path in texts for line in path.read_text(encoding="utf-8", errors="replace").splitlines()}
    broker = (SAMPLES / "goodlog/clean-start/broker-1.log").read_text(encoding="utf-8").splitlines()[:100]
    behind = {row for name in (*ROWS, *DOCUMENTS) for row in wrapped(broker, (name,), Random(1), 0.1)}
    return frozenset(line for line in read | behind if line.isascii())


def some(first: str) -> Iterator[str]:
    return (line for line in lines() if line[:1] in first and line)


@pytest.mark.parametrize("name", order())
def test_a_line_that_bears_a_wrapper_bears_its_sign(name: str) -> None:
    module, bears = import_module(f"{wrappers.__name__}.{name}"), re2.compile(sign(inside=False))
    borne = [line for line in some(module.FIRST) if module.unwrap(Record("a", 0, line)) is not None]
    assert [line for line in borne if bears.search(line) is None] == []
    assert borne or name == "journal_json"


@pytest.mark.parametrize("prefix", PREFIXES, ids=lambda prefix: prefix.name)
def test_what_is_cut_off_is_what_the_parser_takes_off(prefix: Prefix) -> None:
    module, fits, head = import_module(f"{wrappers.__name__}.{prefix.name}"), re2.compile(prefix.fits), re2.compile(prefix.head)
    fitting = [line for line in lines() if fits.search(line)]
    for line in fitting:
        inner, cut = module.unwrap(Record("a", 0, line)), head.match(line)
        assert inner is not None
        assert cut is not None
        assert inner.text == line[cut.end() :]
    assert len(fitting) > 50
