"""Where the pages may be served, and under which names."""

from __future__ import annotations

import pytest

from engine.errors import ListenError, UsageError
from engine.web.server import listen_on, origins


def test_a_free_port_is_chosen_and_named() -> None:
    listener = listen_on("127.0.0.1", 0)
    with listener.socket:
        assert listener.port > 0
        assert listener.address == f"http://127.0.0.1:{listener.port}/"
        assert listener.names() == {f"127.0.0.1:{listener.port}", f"localhost:{listener.port}"}


@pytest.mark.parametrize(
    ("public", "names"),
    [
        ("https://Tocsin.example", {"tocsin.example", "tocsin.example:443"}),
        ("https://tocsin.example:8443", {"tocsin.example:8443"}),
        ("http://[::1]", {"[::1]", "[::1]:80"}),
    ],
)
def test_the_public_address_is_a_name_too(public: str, names: set[str]) -> None:
    listener = listen_on("127.0.0.1", 0)
    with listener.socket:
        assert listener.names(public) - listener.names() == names


def test_a_taken_port_is_said_with_what_to_do() -> None:
    listener = listen_on("127.0.0.1", 0)
    with (
        listener.socket,
        pytest.raises(ListenError, match=rf"^127\.0\.0\.1:{listener.port} is taken by another program .* --listen"),
    ):
        listen_on("127.0.0.1", listener.port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_not_let_in_without_knowing_who_they_are(host: str) -> None:
    with pytest.raises(UsageError, match=r"needs web\.auth. Without it listen on 127"):
        listen_on(host, 0, "https://tocsin.example")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_let_in_under_a_name(host: str) -> None:
    with pytest.raises(UsageError, match=r"set web\.public_url to the address that people type"):
        listen_on(host, 0, has_auth=True)
    listener = listen_on(host, 0, "https://Tocsin.example", has_auth=True)
    with listener.socket:
        assert not listener.is_local
        assert "tocsin.example" in listener.names("https://Tocsin.example")
        assert "https://tocsin.example" in origins(listener, "https://Tocsin.example")


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(ListenError, match="not an address of this machine"):
        listen_on("not a host", 0)
