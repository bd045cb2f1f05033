"""What the job needs of the machine is said before Spark is started."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import pytest

from engine.errors import RuntimeMissing, TocsinError
from engine.spark import session
from engine.spark.spark_settings import Resources, spark_settings


def installed(folder: Path, release: str | None, script: str = "") -> str:
    """Put a java into `folder`/bin; return the folder."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return str(folder)


@pytest.mark.parametrize(("release", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("11.0.2", 11)])
def test_the_version_is_read_from_the_release_file(tmp_path: Path, release: str, major: int) -> None:
    home = installed(tmp_path / "jre", release)
    assert session.java_version(f"{home}/bin/java") == major


def test_without_a_release_file_java_is_asked(tmp_path: Path) -> None:
    home = installed(tmp_path / "jre", None, "echo 'openjdk version \"21.0.1\" 2023-10-17' >&2")
    assert session.java_version(f"{home}/bin/java") == 21
    silent = installed(tmp_path / "other", None)
    assert session.java_version(f"{silent}/bin/java") is None


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    home, other = installed(tmp_path / "a", "17"), installed(tmp_path / "b", "17")
    assert session.java_command({"JAVA_HOME": home, "PATH": f"{other}/bin"}) == f"{home}/bin/java"
    assert session.java_command({"PATH": f"{other}/bin"}) == f"{other}/bin/java"
    assert session.java_command({"JAVA_HOME": str(tmp_path), "PATH": f"{other}/bin"}) is None


def test_no_java_and_an_old_one_are_one_sentence_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(RuntimeMissing, match=r"needs Java 17 or newer and found none; install a JRE"):
        session.check_runtime({"PATH": str(tmp_path)})
    old = installed(tmp_path / "old", "1.8.0_392")
    with pytest.raises(RuntimeMissing, match=r"needs Java 17 or newer; .*/old/bin/java is 8"):
        session.check_runtime({"JAVA_HOME": old})


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PACKAGES", ("json", "no_such_package", "no.such.package"))
    with pytest.raises(RuntimeMissing, match=r"\(no_such_package, no\.such\.package\); install them with: pip install"):
        session.check_runtime()


def test_a_temporary_folder_that_cannot_be_written_to_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(TocsinError, match=r"nothing can be written to the temporary folder: .*TMPDIR"):
        session._run_folder()


def test_a_temporary_folder_with_blanks_and_quotes_is_one_option_of_java(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" c'
    options = spark_settings(Resources(), folder).values["spark.driver.extraJavaOptions"]
    assert f"-Djava.io.tmpdir={folder}" in shlex.split(options)  # which Spark's launcher reads as a shell does
