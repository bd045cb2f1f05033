"""The walk of a new user: from a wheel and an empty home to the first incident in a channel, by the commands of the README.

Python packages come by pip from its registry; Java is that of the machine. `-s` shows the minutes of each step.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import Struct, field

from tests.standins.slack import TOKEN, SlackStandIn
from tests.unit.cli.checking.test_configuration import MISTAKES, WRONG

ROOT = Path(__file__).parent.parent
EXTRAS = "spark,kafka,slack,web"
MINUTES = 10.0  # to the first incident, downloads left out
WITHIN_S = 300.0

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(3600)]


class Walk(Struct):
    """A user in an empty home: what is on the PATH is of the system and of pipx. `minutes` counts each step."""

    home: Path
    minutes: dict[str, float] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of the user: those of pip go on, as its registry may be named there."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "JAVA_HOME", "LANG"))}
        path = os.pathsep.join((str(self.home / ".local" / "bin"), *os.defpath.split(os.pathsep), _folder_of("java")))
        return {**kept, "HOME": str(self.home), "PATH": path, "TOCSIN_TEST_TOKEN": TOKEN, "SLACK_BOT_TOKEN": TOKEN}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.minutes[name] = (time.monotonic() - began) / 60

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Run a command in the home; return what it printed. Fails on another exit code."""
        done = subprocess.run(command, check=False, cwd=self.home, env=self.environment, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout


def _folder_of(command: str) -> str:
    found = shutil.which(command)
    return str(Path(found).parent) if found else ""


def test_from_a_wheel_and_an_empty_home_to_the_first_incident_in_minutes(tmp_path: Path) -> None:
    walk = Walk(tmp_path / "home")
    (walk.home / "logs").mkdir(parents=True)
    log = walk.home / "logs" / "server.log"
    log.write_text(line("INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"))
    wheel = built(tmp_path)
    with walk.step("install"):
        install(walk, wheel, tmp_path / "tool")
    assert walk.run("tocsin", "--version").startswith("tocsin ")
    with SlackStandIn() as slack:
        with walk.step("config check of mistakes"):
            finds_what_is_planted(walk, slack)
        with walk.step("init"):
            walk.run("tocsin", "init", "--logs", "logs", "--cluster", "prod", "--timezone", "UTC", "--slack", "#kafka-ops")
            configured(walk.home / "tocsin.yml", slack)
        with walk.step("config check"):
            assert "nothing is wrong" in walk.run("tocsin", "config", "check")
        with running(walk) as process:
            with walk.step("run"):
                until(lambda: is_well(walk), process, walk)
            with walk.step("prove"):
                proved = walk.run("tocsin", "prove", "--receiver", "slack")
                assert "the line came through in" in proved
            with walk.step("first incident"):
                told = len(slack.parents())
                with log.open("a") as appended:
                    appended.write(broken_disk())
                until(lambda: len(slack.parents()) > told, process, walk)
        texts = [message["text"] for message in slack.parents()]
        assert "the disk of /srv/kafka fails" in texts[-1], texts
    for name, minutes in walk.minutes.items():
        print(f"{minutes:5.1f} min  {name}")
    assert sum(minutes for name, minutes in walk.minutes.items() if name != "install") < MINUTES, walk.minutes


def built(folder: Path) -> Path:
    """Build the wheel, as whoever publishes it does; return it."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "dist")]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def install(walk: Walk, wheel: Path, tool: Path) -> None:
    """Install the wheel by pipx, which is in a virtual environment of its own."""
    walk.run(sys.executable, "-m", "venv", tool)
    walk.run(tool / "bin" / "pip", "install", "--quiet", "pipx")
    constraint = f"--constraint={ROOT / 'constraints.txt'}"
    walk.run(tool / "bin" / "pipx", "install", "--python", sys.executable, f"--pip-args={constraint}", f"{wheel}[{EXTRAS}]")


def finds_what_is_planted(walk: Walk, slack: SlackStandIn) -> None:
    """Check a configuration with mistakes: one run names all, and changes nothing."""
    path = walk.home / "wrong.yml"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        path.write_text(WRONG % {"closed": closed.getsockname()[1], "slack": slack.base_url})
        printed = walk.run("tocsin", "config", "check", "-c", path, code=2)
    assert [mistake for mistake in MISTAKES if mistake not in printed] == [], printed
    assert not (walk.home / ".tocsin").exists()
    path.unlink()


def configured(path: Path, slack: SlackStandIn) -> None:
    """Let the configuration that `init` wrote talk to the stand-in for Slack."""
    text = path.read_text()
    token = 'token: "env:SLACK_BOT_TOKEN"'
    assert token in text
    path.write_text(text.replace(token, f'{token}, base_url: "{slack.base_url}"'))


@contextmanager
def running(walk: Walk) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tocsin run` beside the block, and end it as systemd does."""
    with (walk.home / "said").open("wb") as said:
        process = subprocess.Popen(
            ["tocsin", "run"], cwd=walk.home, env=walk.environment, stdout=said, stderr=said, start_new_session=True
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN_S) == 0, walk.home.joinpath("said").read_text()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def is_well(walk: Walk) -> bool:
    done = subprocess.run(["tocsin", "doctor"], check=False, cwd=walk.home, env=walk.environment, capture_output=True)
    return done.returncode == 0


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes], walk: Walk) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        said = walk.home.joinpath("said").read_text()
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def line(text: str) -> str:
    return f"[{datetime.now(UTC):%Y-%m-%d %H:%M:%S},000] {text}\n"


def broken_disk() -> str:
    where = "in dir /srv/kafka with offset 5 (exclusive) and recovery point 5 (kafka.server.LogDirFailureChannel)"
    failed = line(f"ERROR Error while flushing log for orders-0 {where}") + "java.io.IOException: Input/output error\n"
    return failed + line("INFO [KafkaServer id=1] goes on (kafka.server.KafkaServer)")
