"""Reading a broker that asks for passwords and speaks TLS; what is said when it does not let us in, and what is never said."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from connectors.kafka import cluster, open_source
from engine.errors import SourceAway, SourceDenied
from tests.servers.secured import PASSWORD, USER, Secured, secured
from tests.servers.topics import Topics

ROOT = Path(__file__).parents[2]
WRONG = "not-the-one-7c1"
WITHIN_S = 240


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Secured]:
    with secured(jars, tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def topic(guarded: Secured) -> Iterator[str]:
    topics = Topics(guarded.broker.address)
    made = topics.make(name="logs")
    topics.write(made, ["one", "two"])
    yield made
    topics.close()


class Run:
    """`tocsin run --once` over one source, watched while it runs."""

    def __init__(self, folder: Path, address: str, topic: str, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        self.folder, self.seen = folder, ""
        lines = "".join(f"      {name}: '{value}'\n" for name, value in options.items())
        source = f"  - type: kafka\n    bootstrap_servers: '{address}'\n    topics: [{topic}]\n    options:\n{lines}"
        (folder / "tocsin.yml").write_text(f"sources:\n{source}store: sqlite:///state.db\n")
        command = [sys.executable, "-m", "engine.cli.main", "run", "-c", str(folder / "tocsin.yml"), "--once"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **secrets}
        began = time.monotonic()
        with (folder / "out").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
            while process.poll() is None:
                assert time.monotonic() < began + WITHIN_S
                self.seen += commands()
                time.sleep(0.2)
        self.code, self.lasted_s = process.returncode, time.monotonic() - began
        self.said = (folder / "out").read_text()

    def tells(self, secret: str, *but: Path) -> bool:
        """Tell whether a secret is anywhere but in the files `but`: in what was printed, kept, or seen of processes."""
        kept = [path for path in self.folder.rglob("*") if path.is_file() and path not in but]
        return secret in self.seen or any(secret.encode() in path.read_bytes() for path in kept)


def commands() -> str:
    """Return the command lines of all processes, as everybody on this machine sees them."""
    found = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_text(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
    return found


def with_password(mechanism: str, password: str, **more: str) -> dict[str, str]:
    given = {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
    return {"security.protocol": "SASL_PLAINTEXT", **given, **{name.replace("_", "."): value for name, value in more.items()}}


@pytest.mark.spark
@pytest.mark.usefixtures("runtime")
def test_a_topic_behind_a_password_is_read_with_one_from_the_environment(guarded: Secured, topic: str, tmp_path: Path) -> None:
    options = with_password("PLAIN", "env:KAFKA_PASSWORD")
    run = Run(tmp_path, guarded.addresses["SASL_PLAINTEXT"], topic, options, {"KAFKA_PASSWORD": PASSWORD})
    assert run.code == 0, run.said
    assert "batch 0: 2 lines" in run.said
    assert not run.tells(PASSWORD)


@pytest.mark.spark
@pytest.mark.usefixtures("runtime")
def test_a_topic_behind_tls_and_a_password_is_read_with_one_from_a_file(guarded: Secured, topic: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(guarded.certificate)}
    options = {**with_password("SCRAM-SHA-512", f"file:{secret}"), **tls}
    run = Run(tmp_path, guarded.addresses["SASL_SSL"], topic, options, {})
    assert run.code == 0, run.said
    assert "batch 0: 2 lines" in run.said
    assert not run.tells(PASSWORD, secret)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_one_sentence_and_is_not_in_it(
    guarded: Secured, topic: str, tmp_path: Path, mechanism: str
) -> None:
    address = guarded.addresses["SASL_PLAINTEXT"]
    run = Run(tmp_path, address, topic, with_password(mechanism, "env:KAFKA_PASSWORD"), {"KAFKA_PASSWORD": WRONG})
    assert run.code == 3
    assert run.lasted_s < 30
    (sentence,) = run.said.splitlines()
    assert f"{address} does not let us in: SASL authentication error: Authentication failed" in sentence
    assert "check sasl.mechanism, sasl.username and sasl.password" in sentence
    assert not run.tells(WRONG)


def test_a_certificate_that_is_not_trusted_is_one_sentence(guarded: Secured, topic: str, tmp_path: Path) -> None:
    run = Run(tmp_path, guarded.addresses["SSL"], topic, {"security.protocol": "SSL"}, {})
    assert run.code == 3
    assert run.lasted_s < 30
    (sentence,) = run.said.splitlines()
    assert f"{guarded.addresses['SSL']} does not let us in: SSL handshake failed" in sentence
    assert "certificate verify failed" in sentence
    assert "check ssl.ca.location and the certificate of the broker" in sentence


@pytest.mark.parametrize("kind", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_a_plain_client_at_a_guarded_door_is_told_to_look_at_its_protocol(guarded: Secured, topic: str, kind: str) -> None:
    source = open_source({"bootstrap_servers": guarded.addresses[kind], "topic": topic, "final": True})
    with pytest.raises(SourceAway, match=r"check the address and security\.protocol"):
        source.count()


def test_a_door_that_stays_shut_is_not_knocked_at_for_every_topic(
    guarded: Secured, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", WRONG)
    address, options = guarded.addresses["SASL_PLAINTEXT"], with_password("PLAIN", "env:KAFKA_PASSWORD")
    shut = cluster.Cluster(address, options)
    began = time.monotonic()
    for name in (topic, "a", "b", "c", "d", "e", "f", "g"):
        with pytest.raises(SourceDenied, match="does not let us in"):
            shut.look(name)
    assert time.monotonic() - began < 2 * cluster.ANSWER_S


def test_a_door_that_has_let_us_in_before_and_does_not_now_is_waited_for(
    guarded: Secured, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    address, options = guarded.addresses["SASL_PLAINTEXT"], with_password("PLAIN", "env:KAFKA_PASSWORD")
    known = cluster.Cluster(address, options)
    assert dict(known.look(topic).ends) == {0: 2}
    monkeypatch.setenv("KAFKA_PASSWORD", WRONG)
    known._connect()
    with pytest.raises(SourceAway, match="does not let us in"):
        known.look(topic)
