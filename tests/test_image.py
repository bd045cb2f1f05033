"""The image of deploy/docker: what its Dockerfile names is there, and its entry point starts what Spark and people ask for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "docker"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
HADOLINT = Path(sys.executable).parent / "hadolint"

EXECUTOR = {
    "SPARK_HOME": "/spark",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "pod",
}


def started(folder: Path, *arguments: str, **environment: str) -> list[str]:
    """Run the entry point where each program that it may start prints its name and arguments; return these."""
    for name in ("java", "tocsin", "spark-submit"):
        program = folder / name
        program.write_text('#!/bin/sh\nfor each in "${0##*/}" "$@"; do printf "%s\\n" "$each"; done\n')
        program.chmod(0o755)
    (folder / "bin").symlink_to(folder)  # $SPARK_HOME/bin
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    command = ["sh", str(FOLDER / "entrypoint.sh"), *arguments]
    done = subprocess.run(command, env={**environment, **path}, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_arguments_are_those_of_tocsin(tmp_path: Path) -> None:
    assert started(tmp_path, "scan", "/logs of today") == ["tocsin", "scan", "/logs of today"]


def test_an_executor_has_the_options_of_its_jvm_each_as_one_argument(tmp_path: Path) -> None:
    options = {f"SPARK_JAVA_OPT_{n}": f"-Dnumber={n} of many; $HOME" for n in range(12)}
    java, *arguments = started(tmp_path, "executor", **EXECUTOR, **options)
    assert java == "java"
    assert arguments[:12] == [f"-Dnumber={n} of many; $HOME" for n in range(12)]
    assert arguments[12:16] == ["-Xms1g", "-Xmx1g", "-cp", "/spark/jars/*"]
    assert arguments[16:] == [
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://driver:7078", "--executor-id", "3", "--cores", "1", "--app-id", "app"),
        *("--hostname", "10.0.0.7", "--resourceProfileId", "0", "--podName", "pod"),
    ]


def test_a_driver_of_cluster_mode_is_spark_submit(tmp_path: Path) -> None:
    given = {"SPARK_HOME": str(tmp_path), "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.5"}
    submitted = started(tmp_path, "driver", "--properties-file", "p", "local:///opt/tocsin/application.py", "job", **given)
    assert submitted[:5] == ["spark-submit", "--conf", "spark.driver.bindAddress=10.0.0.5", "--deploy-mode", "client"]
    assert submitted[5:] == ["--properties-file", "p", "local:///opt/tocsin/application.py", "job"]


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sources = [
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M) for name in line.split() if name[0] != "-"
    ]
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(source == name or source.startswith(f"{name}/") for name in allowed), source


def test_every_extra_that_a_part_needs_is_installed() -> None:
    (named,) = re.findall(r'"\.\[([\w,]+)\]"', DOCKERFILE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.keys() - {"dev", "fuzz", "mutate"} == set(named.split(","))


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint has no wheel for this machine")
def test_hadolint_finds_nothing() -> None:
    command = [str(HADOLINT), "--config", str(FOLDER / "hadolint.yaml"), str(FOLDER / "Dockerfile")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_the_entry_point_is_a_program_in_sh() -> None:
    path = FOLDER / "entrypoint.sh"
    assert path.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(path)], check=True)
