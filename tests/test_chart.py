"""The chart of deploy/helm renders to what Kubernetes takes and to a configuration that loads; what cannot work is refused.

Needs the program `helm` (go install helm.sh/helm/v3/cmd/helm@v3.22.0), and kubernetes-validate for a check of the schemas.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.config import Settings, load
from engine.secrets import Secret

CHART = Path(__file__).parents[1] / "deploy" / "helm" / "tocsin"
HELM = shutil.which("helm")
VERSION = "1.31.0"  # of Kubernetes
SOURCES = [{"type": "kafka", "bootstrap_servers": "kafka:9092", "topics": ["logs"], "labels": {"cluster": "prod"}}]
STORE = {"url": "postgresql+psycopg://tocsin@db:5432/tocsin", "password": "env:STORE_PASSWORD"}
WEB = {"public_url": "https://tocsin.example", "auth": {"users": "/etc/tocsin/users/users", "secret": "env:SESSION_SECRET"}}
ONE_POD: Mapping[str, Any] = {"config": {"sources": SOURCES}}
APART: Mapping[str, Any] = {
    "config": {"sources": SOURCES, "store": STORE, "web": WEB},
    "secrets": {
        "env": {
            "STORE_PASSWORD": {"secret": "tocsin", "key": "store"},
            "SESSION_SECRET": {"secret": "tocsin", "key": "session"},
        },
        "files": {"kafka": "kafka-certificate"},
    },
    "separate": True,
    "pages": {"enabled": True, "usersSecret": "tocsin-users"},
    "metrics": {"serviceMonitor": {"enabled": True}},
}
EXECUTORS: Mapping[str, Any] = {
    "config": {"sources": SOURCES, "store": STORE, "spark": {"checkpoint": "s3a://bucket/tocsin", "conf": {"spark.a": "b"}}},
    "job": {"executors": {"count": 3}},
}

pytestmark = [pytest.mark.long, pytest.mark.skipif(HELM is None, reason="needs helm")]


def template(folder: Path, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    path = folder / "values.yml"
    path.write_text(yaml.safe_dump(dict(values)))
    command = [str(HELM), "template", "t", str(CHART), "-n", "logs", "--kube-version", VERSION, "-f", str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def rendered(folder: Path, values: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the resources by kind and name, after a check against the schemas of Kubernetes where that is installed."""
    done = template(folder, values)
    assert done.returncode == 0, done.stderr
    resources = [resource for resource in yaml.safe_load_all(done.stdout) if resource]
    try:
        import kubernetes_validate
    except ImportError:
        pass
    else:
        for resource in resources:
            if "monitoring.coreos.com" not in resource["apiVersion"]:
                kubernetes_validate.validate(resource, VERSION, strict=True)
    return {(resource["kind"], resource["metadata"]["name"]): resource for resource in resources}


def settings_of(folder: Path, resources: Mapping[tuple[str, str], Mapping[str, Any]]) -> Settings:
    path = folder / "tocsin.yml"
    path.write_text(resources["ConfigMap", "t-tocsin"]["data"]["tocsin.yml"])
    return load(path)


def test_one_pod_has_everything_and_may_do_nothing_in_the_cluster(tmp_path: Path) -> None:
    resources = rendered(tmp_path, ONE_POD)
    assert [name for kind, name in resources if kind == "Deployment"] == ["t-tocsin-job"]
    assert not [kind for kind, _ in resources if kind.startswith("Role")]
    (container,) = resources["Deployment", "t-tocsin-job"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "-c", "/etc/tocsin/tocsin.yml"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    settings = settings_of(tmp_path, resources)
    assert settings.metrics is not None
    assert settings.checkpoint == Path("/var/lib/tocsin/checkpoint")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {"/var/lib/tocsin", "/var/cache/tocsin", "/tmp"} <= mounts


def test_parts_apart_share_configuration_and_secrets(tmp_path: Path) -> None:
    resources = rendered(tmp_path, APART)
    commands = {}
    for part in ("job", "notify", "pages"):
        pod = resources["Deployment", f"t-tocsin-{part}"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        commands[part] = container["args"][0]
        assert {"STORE_PASSWORD", "SESSION_SECRET"} <= {variable["name"] for variable in container["env"]}
        assert "/etc/tocsin/secrets/kafka" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert commands == {"job": "job", "notify": "notify", "pages": "serve"}
    assert settings_of(tmp_path, resources).web.with_run
    selector = resources["Service", "t-tocsin"]["spec"]["selector"]
    assert selector.items() <= resources["Deployment", "t-tocsin-pages"]["spec"]["template"]["metadata"]["labels"].items()
    assert ("ServiceMonitor", "t-tocsin") in resources


def test_with_executors_the_job_is_the_driver_of_spark(tmp_path: Path) -> None:
    resources = rendered(tmp_path, EXECUTORS)
    settings = settings_of(tmp_path, resources)
    assert (settings.master, settings.cores) == ("k8s://https://kubernetes.default.svc", 3)
    assert settings.checkpoint_url == "s3a://bucket/tocsin"
    assert settings.conf["spark.driver.host"] == "t-tocsin-driver.logs.svc"
    assert settings.conf["spark.kubernetes.driver.pod.name"] == Secret("env", "POD_NAME")
    assert settings.conf["spark.a"] == "b"
    assert resources["RoleBinding", "t-tocsin-driver"]["subjects"][0]["namespace"] == "logs"
    pod = yaml.safe_load(resources["ConfigMap", "t-tocsin"]["data"]["executor.yml"])
    assert pod["spec"]["containers"][0]["name"] == settings.conf["spark.kubernetes.executor.podTemplateContainerName"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"config": {"sources": []}}, "config.sources is empty"),
        ({**ONE_POD, "separate": True}, "needs a store in PostgreSQL"),
        ({**ONE_POD, "job": {"executors": {"count": 2}}}, "a checkpoint that all executors reach"),
        ({**ONE_POD, "pages": {"enabled": True}}, "needs config.web.auth"),
        (
            {
                "config": {"sources": SOURCES, "store": STORE, "web": {**WEB, "auth": {"users": "u"}}},
                "pages": {"enabled": True},
            },
            "config.web.auth.secret",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(tmp_path: Path, values: Mapping[str, Any], sentence: str) -> None:
    done = template(tmp_path, values)
    assert done.returncode != 0
    assert sentence in done.stderr


def test_helm_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    path = tmp_path / "values.yml"
    path.write_text(yaml.safe_dump(dict(APART)))
    done = subprocess.run([str(HELM), "lint", str(CHART), "-f", str(path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
