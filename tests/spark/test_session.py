"""Who does not know the secret of a run is not listened to by its Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from engine.spark.spark_settings import Resources, spark_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ENDPOINTS = ("LocalSchedulerBackendEndpoint", "BlockManagerMaster", "MapOutputTracker", "HeartbeatReceiver")
QUICK = {"spark.rpc.askTimeout": "10s", "spark.rpc.lookupTimeout": "10s"}


def reached(spark: SparkSession, endpoint: str, **settings: str) -> bool:
    """Whether a stranger with these settings is let in to an endpoint of Spark's driver, which could be told to stop there."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.SparkConf(False)
    for name, value in {**QUICK, **settings}.items():
        conf.set(name.replace("_", "."), value)
    package = jvm.java.lang.Class.forName("org.apache.spark.internal.config.package$").getField("MODULE$").get(None)
    manager = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), package.AUTH_SECRET_FILE())
    stranger = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, manager, True)
    try:
        port = int(spark.sparkContext._jsc.sc().conf().get("spark.driver.port"))
        stranger.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port), endpoint)
    except Py4JJavaError:
        return False
    finally:
        stranger.shutdown()
        stranger.awaitTermination()
    return True


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_spark_listens_to_nobody_without_its_secret(spark: SparkSession, endpoint: str) -> None:
    assert not reached(spark, endpoint)


def test_spark_listens_to_who_knows_its_secret(spark: SparkSession) -> None:
    """The stranger above could: here it lives in Spark's own process, which finds the secret that Spark has made."""
    assert reached(spark, ENDPOINTS[0], spark_authenticate="true", spark_network_crypto_enabled="true")


def test_python_listens_to_nobody_but_its_java(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway
    assert gateway.gateway_parameters.auth_token
    assert gateway.callback_server_parameters.auth_token == gateway.gateway_parameters.auth_token


def test_no_secret_is_a_setting_that_would_stand_on_a_command_line(tmp_path: Path) -> None:
    assert [name for name in spark_settings(Resources(), tmp_path).values if "secret" in name] == []
