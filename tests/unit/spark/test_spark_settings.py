"""Which master and settings Spark gets, and which of the configuration have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.secrets import Secret
from engine.spark.spark_settings import Resources, is_local, spark_settings, without_user

FOLDER = Path("/tmp/run")
CLUSTER = "spark://master:7077"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]"])
def test_a_run_on_this_machine_is_local(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize("master", [CLUSTER, "yarn", "k8s://https://api:6443", "local-cluster[2,1,1024]"])
def test_a_cluster_is_not(master: str) -> None:
    assert not is_local(master)


@pytest.mark.parametrize(
    ("configured", "submitted", "master"),
    [
        (None, None, "local[3]"),
        (CLUSTER, None, CLUSTER),
        (None, "yarn", "yarn"),
        (None, "local[*]", "local[*]"),
        (CLUSTER, "local[*]", CLUSTER),  # which is what spark-submit says when it is given no master
        (CLUSTER, "yarn", "yarn"),
    ],
)
def test_the_master_of_spark_submit_comes_before_that_of_the_configuration(
    configured: str | None, submitted: str | None, master: str
) -> None:
    given = {"spark.master": submitted} if submitted else None
    settings = spark_settings(Resources(cores=3, master=configured), FOLDER, given)
    assert (settings.master, settings.values["spark.master"]) == (master, master)
    said = [sentence for sentence in settings.sentences if "the master is that of spark-submit, yarn, and not" in sentence]
    assert len(said) == (configured == CLUSTER and submitted == "yarn")


def test_what_is_for_one_machine_is_set_in_a_local_run_only() -> None:
    local, cluster = spark_settings(Resources(), FOLDER), spark_settings(Resources(master=CLUSTER), FOLDER)
    for name in ("spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"):
        assert name in local.values
        assert name not in cluster.values
    assert "-XX:TieredStopAtLevel=1" in local.values["spark.driver.extraJavaOptions"]
    assert "-XX:TieredStopAtLevel=1" not in cluster.values["spark.driver.extraJavaOptions"]
    assert local.sentences == ()


def test_a_setting_of_the_configuration_replaces_a_default_and_one_of_spark_submit_replaces_both() -> None:
    conf = {"spark.ui.enabled": "true", "spark.executor.memory": "2g", "spark.app.name": "mine"}
    settings = spark_settings(Resources(master=CLUSTER, conf=conf), FOLDER, {"spark.executor.memory": "3g"})
    assert [settings.values[name] for name in conf] == ["true", "3g", "mine"]


def test_a_setting_that_the_result_depends_on_stays_and_that_is_said_with_the_key_to_write_instead() -> None:
    conf = {"spark.sql.shuffle.partitions": "200", "spark.sql.session.timeZone": "Asia/Seoul"}
    settings = spark_settings(Resources(partitions=4, conf=conf), FOLDER)
    assert [settings.values[name] for name in conf] == ["4", "UTC"]
    assert settings.sentences == (
        "the setting spark.sql.session.timeZone of Spark is UTC: tocsin needs that, and yours has no effect",
        "the setting spark.sql.shuffle.partitions of Spark is 4: tocsin needs that, and yours has no effect; write `partitions`"
        " under `spark` instead",
    )
    same = spark_settings(Resources(conf={"spark.sql.session.timeZone": "UTC"}), FOLDER)
    assert same.sentences == ()


def test_java_options_of_the_configuration_are_added_to_ours() -> None:
    conf = {"spark.driver.extraJavaOptions": "-Dmine=1"}
    options = spark_settings(Resources(conf=conf), FOLDER).values["spark.driver.extraJavaOptions"].split()
    assert options[-1] == "-Dmine=1"
    assert any(option.startswith("-Dlog4j2") for option in options)


def test_cores_are_executors_of_one_core_and_a_standalone_cluster_gives_no_more() -> None:
    standalone = spark_settings(Resources(cores=3, master=CLUSTER), FOLDER).values
    assert (standalone["spark.executor.cores"], standalone["spark.cores.max"]) == ("1", "3")
    assert standalone["spark.sql.shuffle.partitions"] == "3"
    kubernetes = spark_settings(Resources(cores=3, master="k8s://https://api:6443"), FOLDER).values
    assert (kubernetes["spark.executor.cores"], kubernetes["spark.executor.instances"]) == ("1", "3")
    assert kubernetes["spark.authenticate"] == "true", "Kubernetes and YARN hand out the secret themselves"


def test_a_secret_is_revealed_and_kept_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SECRET", "s3cr3t")
    resources = Resources(master=CLUSTER, conf={"spark.authenticate.secret": Secret("env", "SPARK_SECRET")})
    settings = spark_settings(resources, FOLDER)
    assert settings.secrets == {"spark.authenticate.secret": "s3cr3t"}
    assert "s3cr3t" not in repr(settings.values)
    assert settings.values["spark.authenticate"] == settings.values["spark.network.crypto.enabled"] == "true"
    monkeypatch.delenv("SPARK_SECRET")
    with pytest.raises(UsageError, match="the environment variable SPARK_SECRET is not set"):
        spark_settings(resources, FOLDER)


def test_a_value_from_the_environment_that_is_no_secret_is_a_setting_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "-Dmine=1")
    names = ("spark.sql.shuffle.partitions", "spark.driver.extraJavaOptions", "spark.kubernetes.driver.pod.name")
    settings = spark_settings(Resources(conf={name: Secret("env", "GIVEN") for name in names}), FOLDER)
    assert settings.secrets == {}
    assert settings.values["spark.sql.shuffle.partitions"] == "1"
    assert settings.values["spark.driver.extraJavaOptions"].split()[-1] == "-Dmine=1"
    assert settings.values["spark.kubernetes.driver.pod.name"] == "-Dmine=1"


def test_a_standalone_cluster_without_a_secret_is_said_to_be_open() -> None:
    (sentence,) = spark_settings(Resources(master="spark://me:pw@master:7077"), FOLDER).sentences
    assert sentence.startswith("whoever reaches the ports of Spark at spark://master:7077 can run code there: set spark.auth")
    assert without_user("spark://me:pw@master:7077") == "spark://master:7077"


@pytest.mark.parametrize(("checkpoint", "ours"), [("", True), ("s3a://bucket/tocsin", True), ("hdfs://namenode/tocsin", False)])
def test_files_of_a_checkpoint_are_renamed_as_its_file_system_does_it_best(checkpoint: str, ours: bool) -> None:
    values = spark_settings(Resources(checkpoint=checkpoint), FOLDER).values
    assert ("spark.sql.streaming.checkpointFileManagerClass" in values) == ours
