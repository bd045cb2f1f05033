"""A run beside other users of the machine: what it listens on, what it leaves where, and who may read it."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.spark.listening import Listener, command_lines, listeners, tree_of
from tests.spark.test_run import ENVIRONMENT, WITHIN_S, configured, wait

SECRET = "Zq7planted9Xw"
BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
FIRST = "[2022-10-05 17:05:00,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
FAULT = (
    "[2022-10-05 17:05:01,{:03}] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-{}"
    " (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR"
    " Set(0) is insufficient to satisfy the min.isr requirement of 2 for partition a-{}\n"
)
OPEN = (
    f"[2022-10-05 17:05:02,002] ERROR [Worker id=1] Failed, ssl.truststore.password={SECRET}-header (o.a.k.c.r.Worker)\n"
    f"org.apache.kafka.common.config.ConfigException: cannot open it with password={SECRET}-same-line\n"
    f'\tsasl.jaas.config = o.a.k.ScramLoginModule required username="u" password="{SECRET}-jaas";\n'
    f"\tbroker.password =\n\t{SECRET}-next-line\n"
    f"-----BEGIN PRIVATE KEY-----\n{BASE64}\n{BASE64}\n"
)
STRANGE = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"g\np0\ne\n",  # py4j: forget the first callback
    b"c\np0\ncall\nro0\nL1\ne\n",  # py4j: call it
    b"A\nguessed\ne\n",  # py4j: a guessed token
    b"c\nt\nshutdown\ne\n",  # py4j: end the gateway
    b"\xac\xed\x00\x05" + b"\0" * 256,  # Java's serialised objects
    b"\x00\x00\x00\x07guessed" * 40,
)


@contextmanager
def watching(config: Path, temporary: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`tocsin run` as somebody starts it whose umask keeps nothing from anybody."""
    command = [sys.executable, "-m", "engine.cli.main", "run", "-c", str(config), *options]
    environment = {**ENVIRONMENT, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
        umask=0,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def files(*roots: Path) -> Iterator[Path]:
    for root in roots:
        yield root
        yield from root.rglob("*")


def open_to_others(*roots: Path) -> list[str]:
    found = []
    for path in files(*roots):
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            # Spark makes files that it was given executable for everybody, which opens nothing without the right to read
            open_bits = 0o066 if stat.S_ISREG(mode) else 0o077
            if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & open_bits:
                found.append(f"{path} {stat.filemode(mode)}")
    return found


def holding(needle: str, *roots: Path) -> list[str]:
    found = []
    for path in files(*roots):
        with suppress(OSError):
            if path.is_file() and needle.encode() in path.read_bytes():
                found.append(str(path))
    return found


def said_to(listener: Listener, words: bytes) -> bytes:
    """What a stranger who says `words` is answered."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", listener.port), timeout=2) as stranger:
        stranger.settimeout(0.5)
        stranger.sendall(words)
        return stranger.recv(256)
    return b""


def left(temporary: Path) -> list[str]:
    return sorted(path.name for path in temporary.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "tmp").mkdir(mode=0o700)
    (tmp_path / "logs" / "broker-0.log").write_text(FIRST + FAULT.format(1, 1, 1))
    return tmp_path


def follow(place: Path, process: subprocess.Popen[str], partition: int) -> None:
    """Append a fault and wait for its incident: the job is at work."""
    with (place / "logs" / "broker-0.log").open("a") as log:
        log.write(FAULT.format(partition, partition, partition) + OPEN)
    wait(process, place / "state.db", lambda store: any(f"a-{partition}" in repr(each) for each in store.incidents()))


@pytest.mark.timeout(900)  # it starts three times, each of which may take WITHIN_S
def test_a_run_keeps_to_itself_what_it_listens_to_and_writes_and_leaves_nothing(place: Path) -> None:
    config, temporary, store = configured(place, start="earliest"), place / "tmp", place / "state.db"
    kept = (place / "state.checkpoint", temporary)
    with watching(config, temporary) as process:
        follow(place, process, 2)
        pids = tree_of(process.pid)
        found = listeners(pids)
        assert len(found) >= 4, found
        assert [each for each in found if not each.is_loopback] == []
        assert "secret=" not in command_lines(pids)
        answers = {said_to(each, words) for each in found for words in STRANGE}
        assert not any(answer[1:2] == b"y" for answer in answers), answers
        follow(place, process, 3)
        assert [name for name in left(temporary) if not name.startswith("tocsin-run-")] == []
        assert open_to_others(*kept, *place.glob("state.db*")) == []
        assert holding(SECRET, *kept, *place.glob("state.db*")) == []
        assert holding(BASE64, *kept, *place.glob("state.db*")) == []
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert len(left(temporary)) == 1, "a run that is killed cannot tidy up"
    assert holding(SECRET, *kept, *place.glob("state.db*")) == []
    with watching(config, temporary) as process:
        follow(place, process, 4)
        assert len(left(temporary)) == 1, "its own"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    assert left(temporary) == []
    (store.with_suffix(".checkpoint") / "old").mkdir(mode=0o755)
    store.chmod(0o644)
    with watching(config, temporary, "--once") as process:
        _, err = process.communicate(timeout=WITHIN_S)
    said = [line for line in err.splitlines() if "was open to other users, and is now to you alone" in line]
    assert [line.partition(" was ")[0] for line in said] == [
        f"tocsin: {place / name}" for name in ("state.checkpoint", "state.db")
    ]
    assert left(temporary) == []
    assert open_to_others(*kept, *place.glob("state.db*")) == []
