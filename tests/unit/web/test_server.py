"""Where the pages may be served, and under which names."""

from __future__ import annotations

import pytest

from engine.errors import ListenError, UsageError
from engine.web import open_door


def test_a_free_port_is_chosen_and_named() -> None:
    door = open_door("127.0.0.1", 0)
    with door.socket:
        assert door.port > 0
        assert door.address == f"http://127.0.0.1:{door.port}/"
        assert door.names() == {f"127.0.0.1:{door.port}", f"localhost:{door.port}"}


@pytest.mark.parametrize(
    ("public", "names"),
    [
        ("https://Tocsin.example", {"tocsin.example", "tocsin.example:443"}),
        ("https://tocsin.example:8443", {"tocsin.example:8443"}),
        ("http://[::1]", {"[::1]", "[::1]:80"}),
    ],
)
def test_the_public_address_is_a_name_too(public: str, names: set[str]) -> None:
    door = open_door("127.0.0.1", 0)
    with door.socket:
        assert door.names(public) - door.names() == names


def test_a_taken_port_is_said_with_what_to_do() -> None:
    door = open_door("127.0.0.1", 0)
    with door.socket, pytest.raises(ListenError, match=rf"^127\.0\.0\.1:{door.port} is taken by another program .* --listen"):
        open_door("127.0.0.1", door.port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_not_let_in(host: str) -> None:
    with pytest.raises(UsageError, match=r"needs web\.auth, which is not available in this version"):
        open_door(host, 0)


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(ListenError, match="not an address of this machine"):
        open_door("not a host", 0)
