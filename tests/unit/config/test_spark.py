"""`spark` in a configuration: master, settings of Spark with their secrets, and where the checkpoint is."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Secret, load
from engine.config.secrets import without_secrets
from engine.errors import ConfigError
from engine.secrets import is_secret_setting

LEAST = "sources:\n  - {type: files, paths: [a.log]}\n"


def written(folder: Path, spark: str, store: str = "") -> Path:
    path = folder / "tocsin.yml"
    path.write_text(f"{LEAST}spark: {{{spark}}}\n{store}")
    return path


def errors(folder: Path, spark: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(written(folder, spark))
    return [diagnostic.one_line() for diagnostic in error.value.diagnostics]


def test_a_master_settings_of_spark_and_secrets_by_reference(tmp_path: Path) -> None:
    conf = (
        "spark.executor.memory: 2g, spark.authenticate.secret: 'file:spark-secret', spark.dynamicAllocation.enabled: false,"
        " spark.kubernetes.driver.pod.name: 'env:POD_NAME'"
    )
    settings = load(written(tmp_path, f"master: 'spark://m:7077', parallelism: 4, conf: {{{conf}}}"))
    assert (settings.master, settings.parallelism, settings.partitions) == ("spark://m:7077", 4, None)
    assert settings.conf == {
        "spark.executor.memory": "2g",
        "spark.authenticate.secret": Secret("file", str(tmp_path / "spark-secret")),
        "spark.dynamicAllocation.enabled": "false",
        "spark.kubernetes.driver.pod.name": Secret("env", "POD_NAME"),
    }


@pytest.mark.parametrize(
    ("conf", "error"),
    [
        ("executor.memory: 2g", "error[TOC712]: `spark.conf` is wrong: `executor.memory` is not a setting of Spark"),
        ("spark.master: yarn", "error[TOC712]: `spark.conf` is wrong: `spark.master` has a key of its own"),
        ("spark.authenticate.secret: s3cr3t", "`spark.authenticate.secret` must not hold the secret itself"),
        ("spark.jars: [a.jar]", "error[TOC712]: `spark.conf` is wrong: `spark.jars` is not a setting of Spark with a text"),
    ],
)
def test_what_is_no_setting_or_holds_a_secret_is_refused_without_the_secret(tmp_path: Path, conf: str, error: str) -> None:
    (found,) = errors(tmp_path, f"conf: {{{conf}}}")
    assert error in found
    assert "s3cr3t" not in found


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("spark.authenticate.secret", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.ssl.keyPassword", True),
        ("spark.kubernetes.authenticate.oauthToken", True),
        ("spark.authenticate.secret.file", False),
        ("spark.kubernetes.authenticate.oauthTokenFile", False),
        ("spark.kubernetes.executor.secrets.kafka", False),
        ("spark.kubernetes.executor.secretKeyRef.KAFKA_PASSWORD", False),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.executor.memory", False),
    ],
)
def test_settings_that_spark_masks_are_secret_and_names_of_files_are_not(name: str, secret: bool) -> None:
    assert is_secret_setting(name) == secret
    line = f"  conf: {{{name}: hidden, spark.executor.memory: 2g}}"
    assert ("hidden" in without_secrets(line)) == (not secret)
    assert "spark.executor.memory: 2g" in without_secrets(line)


@pytest.mark.parametrize(
    ("checkpoint", "folder", "url"),
    [
        ("", "{at}/.tocsin/tocsin.checkpoint", ""),
        ("checkpoint: state", "{at}/state", ""),
        ("checkpoint: /mnt/shared/tocsin", "/mnt/shared/tocsin", ""),
        ("checkpoint: 'file:///mnt/a%20b'", "/mnt/a b", ""),
        ("checkpoint: 'hdfs://namenode:8020/tocsin'", "{at}/.tocsin/tocsin.checkpoint", "hdfs://namenode:8020/tocsin"),
        ("checkpoint: 's3a://bucket/tocsin'", "{at}/.tocsin/tocsin.checkpoint", "s3a://bucket/tocsin"),
    ],
)
def test_a_checkpoint_is_a_folder_or_elsewhere_with_a_folder_of_the_run_beside_the_store(
    tmp_path: Path, checkpoint: str, folder: str, url: str
) -> None:
    settings = load(written(tmp_path, checkpoint))
    assert (str(settings.checkpoint), settings.checkpoint_url) == (folder.format(at=tmp_path), url)


def test_an_image_has_state_of_no_configured_place_in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "etc" / "tocsin.yml"
    path.parent.mkdir()
    path.write_text("sources: [{type: files, paths: [a.log]}]\n")
    settings = load(path)
    assert settings.store.path == tmp_path / "state" / "tocsin.db"
    assert settings.checkpoint == tmp_path / "state" / "tocsin.checkpoint"
    path.write_text("sources: [{type: files, paths: [a.log]}]\nstore: sqlite:///./own.db\n")
    assert load(path).store.path == tmp_path / "etc" / "own.db"
    path.write_text(
        "sources: [{type: files, paths: [a.log]}]\nstore: postgresql+psycopg://db/tocsin\n"
        "spark: {checkpoint: s3a://b/c}\nweb: {auth: {users: users}}\n"
    )
    settings = load(path)
    assert settings.checkpoint == tmp_path / "state" / "tocsin.checkpoint"
    assert settings.web.auth is not None
    assert settings.web.auth.secret_file == tmp_path / "state" / "tocsin.session-secret"
