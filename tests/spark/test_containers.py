"""Logs of containers through Spark: presets that nobody writes paths for, and runtimes that rotate while they are read."""

from __future__ import annotations

import gzip
import os
import signal
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from engine.store import Store
from tests.containers import append, docker_row, make_docker_log, make_pod_log, pod_row, rotate
from tests.spark.test_run import ENVIRONMENT, WITHIN_S, kept, tocsin, wait
from tests.standins.journal import Journal

AT = datetime(2022, 10, 5, 8, tzinfo=UTC)
HEAD = "[2022-10-05 08:00:00,000] ERROR"
PLACES = {
    "docker": ("docker/shop-orders.log", {"container": "shop-orders", "image": "apache/kafka:3.9.0"}),
    "pod": ("{root}/pods/shop_orders-0_", {"namespace": "shop", "pod": "orders-0", "container": "orders"}),
    "journal": ("journald/broker-1:orders.service", {"host": "broker-1", "unit": "orders.service"}),
}
TROUBLES = 12  # of each log, with a rotation behind each
RULE = """\
id: order-failed
title: "order {order} failed"
severity: high
component: any
detection: {failed: "order {order} failed", condition: failed}
entity: [order]
runbook: {cause: Its handler gave up., impact: None.}
tests: [{log: order 1 failed, fires: {order: "1"}}, {log: order 1 sent, silent: true}]
"""
CONFIGURATION = """\
sources:
  - {type: docker, root: docker, containers: ["shop-*"], start: earliest}
  - {type: kubernetes, root: pods, namespaces: [shop], start: earliest}
  - {type: journald, root: journal, units: [orders], start: earliest}
rules: [rules]
route: {receiver: terminal, group_wait: 0s}
notify_max_age: 0s
store: sqlite:///state.db
spark: {trigger: 200ms}
"""


def test_presets_follow_containers_and_pods_that_are_rotated_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{journal.bin}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "order-failed.yml").write_text(RULE)
    config, store = tmp_path / "tocsin.yml", tmp_path / "state.db"
    config.write_text(CONFIGURATION)
    logs = {
        make_docker_log(tmp_path / "docker" / "containers", "shop-orders"): docker_row,
        make_pod_log(tmp_path / "pods", "orders-0", "orders", "shop"): pod_row,
    }
    unwanted = {
        make_docker_log(tmp_path / "docker" / "containers", "other"): docker_row,
        make_pod_log(tmp_path / "pods", "orders-0", "orders", "other"): pod_row,
    }
    for log, row in unwanted.items():
        append(log, f"{row(f'{HEAD} order unwanted failed', AT)}\n")
    expected: set[str] = set()
    with tocsin("-c", config) as process:
        for number in range(1, TROUBLES + 1):
            for log, row in logs.items():
                name = f"{row.__name__.partition('_')[0]}-{number}"
                append(log, f"{row(f'{HEAD} order {name} ', AT, False)}\n{row('failed', AT)}\n{row(f'{HEAD} sent', AT)}\n")
                rotated = rotate(log, number)
                append(rotated, f"{row(f'{HEAD} order {name}-late failed', AT)}\n")
                expected |= {name, f"{name}-late"}
                if number % 3 == 0:
                    rotated.with_name(f"{rotated.name}.gz").write_bytes(gzip.compress(rotated.read_bytes()))
                    rotated.unlink()
            journal.write(f"{HEAD} order journal-{number} ", unit="orders.service", _LINE_BREAK="line-max")
            journal.write(f"{HEAD} order unwanted failed", unit="sshd.service")
            journal.write("failed", unit="orders.service")
            expected.add(f"journal-{number}")
            if number % 4 == 0:
                wait(process, store, partial(_shows, expected.copy()))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    incidents = kept(store)
    assert {incident.rule for incident in incidents} == {"order-failed"}, "nothing is lost, and nothing else is told"
    assert len(incidents) == len(expected)
    for incident in incidents:
        source_id, labels = PLACES[incident.labels["order"].partition("-")[0]]
        assert incident.evidence[0].source_id.startswith(source_id.format(root=tmp_path))
        assert incident.labels.items() >= labels.items()


def _shows(expected: set[str], store: Store) -> bool:
    return {incident.labels.get("order", "") for incident in store.incidents()} == expected
