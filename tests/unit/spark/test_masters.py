"""The addresses of masters, and whether one takes connections."""

from __future__ import annotations

import socket

import pytest

from engine.spark.masters import addresses_of, answers


@pytest.mark.parametrize(
    ("master", "addresses"),
    [
        ("spark://node-a:7077", [("node-a", 7077)]),
        ("spark://me:secret@node-a:7077,node-b:7078", [("node-a", 7077), ("node-b", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("k8s://https://10.0.0.1:443", []),
        ("yarn", []),
        ("local[2]", []),
    ],
)
def test_addresses_are_those_of_standalone_masters(master: str, addresses: list[tuple[str, int]]) -> None:
    assert list(addresses_of(master)) == addresses


def test_a_master_answers_while_one_of_its_addresses_takes_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # and does not listen
        here, gone = server.getsockname()[1], unheard.getsockname()[1]
        assert answers(f"spark://127.0.0.1:{gone},127.0.0.1:{here}")
        assert not answers(f"spark://127.0.0.1:{gone}")
    assert not answers(f"spark://127.0.0.1:{here}")
    assert answers("yarn"), "nobody can tell"
