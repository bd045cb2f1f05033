"""The installation of deploy/compose: services, files, variables and topics belong together, and its configuration loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from engine.config import load

FOLDER = Path(__file__).parents[1] / "deploy" / "compose"
TEXT = (FOLDER / "compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SHIPPER: dict[str, Any] = yaml.safe_load((FOLDER / "fluent-bit.yml").read_text(encoding="utf-8"))["pipeline"]


def test_the_configuration_loads_and_reads_what_the_shipper_writes() -> None:
    settings = load(FOLDER / "tocsin.yml")
    read = {topic for source in settings.sources for topic in source.topics}
    written = {output["match"]: output["topics"] for output in SHIPPER["outputs"] if output["name"] == "kafka"}
    assert read == set(written.values())
    assert written.keys() == {entry["tag"] for entry in SHIPPER["inputs"]}
    assert settings.web.with_run
    assert settings.web.auth is not None


def test_the_shipper_finds_logs_in_the_folder_that_it_is_given() -> None:
    mounts = dict(mount.split(":")[:2] for mount in COMPOSE["services"]["shipper"]["volumes"])
    samples = next(FOLDER / source for source, target in mounts.items() if target == "/samples")
    for entry in SHIPPER["inputs"]:
        assert [*samples.glob(entry["path"].removeprefix("/samples/"))], entry["path"]


def test_what_is_mounted_exists_or_is_a_volume() -> None:
    for name, service in COMPOSE["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert (FOLDER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], (name, mount)


def test_services_wait_for_services_with_a_check_of_health() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        for other, wait in service.get("depends_on", {}).items():
            assert other in services
            assert wait["condition"] == "service_completed_successfully" or "healthcheck" in services[other]


def test_every_variable_without_a_default_is_in_the_example() -> None:
    given = dict(line.split("=", 1) for line in (FOLDER / "example.env").read_text().splitlines() if line and line[0] != "#")
    assert set(re.findall(r"\$\{(\w+):\?", TEXT)) == given.keys()
    references = set(re.findall(r"env:(\w+)", (FOLDER / "tocsin.yml").read_text()))
    assert references <= COMPOSE["services"]["tocsin"]["environment"].keys()


def test_only_this_machine_reaches_the_ports() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
