"""The addresses for Prometheus and for whoever restarts processes."""

from __future__ import annotations

from starlette.testclient import TestClient

from engine.web.health import EXPOSITION, health_application


def test_metrics_are_given_as_they_are() -> None:
    answer = TestClient(health_application(lambda: b"tocsin_batches_total 1.0\n", list, list)).get("/metrics")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, "tocsin_batches_total 1.0\n", EXPOSITION)


def test_a_run_that_works_is_healthy_and_ready() -> None:
    client = TestClient(health_application(lambda: b"", list, list))
    assert [client.get(path).status_code for path in ("/healthz", "/readyz", "/other")] == [200, 200, 404]


def test_a_store_that_is_away_needs_no_restart() -> None:
    client = TestClient(health_application(lambda: b"", list, lambda: ["the store is away"]))
    assert client.get("/healthz").status_code == 200
    ready = client.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "the store is away\n")


def test_a_part_that_hangs_is_named() -> None:
    answer = TestClient(health_application(lambda: b"", lambda: ["the job hangs"], list)).get("/healthz")
    assert (answer.status_code, answer.text) == (503, "the job hangs\n")
