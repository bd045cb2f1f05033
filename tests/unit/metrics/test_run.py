"""What a run counts, as Prometheus reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from engine.metrics.run import MOST_STREAMS, OTHER_STREAMS, RunMetrics
from engine.model.notifications import Delivery, DeliveryState, Reason

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)


def samples(metrics: RunMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the values of tocsin's own metrics by name and labels."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    all_samples = [sample for family in families for sample in family.samples if sample.name.startswith("tocsin_")]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in all_samples}


def test_a_batch_is_counted_by_stream() -> None:
    metrics = RunMetrics(lambda: NOON)
    metrics.read("broker-1.log", 10, 1000)
    metrics.read("broker-1.log", 5, 400)
    metrics.stored(2, (), 1)
    metrics.triggered(0.3)
    values = samples(metrics)
    assert values["tocsin_lines_total", (("stream", "broker-1.log"),)] == 15
    assert values["tocsin_read_bytes_total", (("stream", "broker-1.log"),)] == 1400
    assert values["tocsin_batches_total", ()] == 1
    assert values["tocsin_incident_changes_total", ()] == 2
    assert values["tocsin_lost_ranges_total", ()] == 1
    assert values["tocsin_last_batch_timestamp_seconds", ()] == NOON.timestamp()
    assert values["tocsin_batch_seconds_count", ()] == 1


def test_matches_are_counted_by_rule_and_late_lines_by_stream() -> None:
    metrics = RunMetrics(lambda: NOON)
    metrics.add_counts(10, {"broker-started": 2, "broker-log-dir-failed": 1}, {"logs-*": 3})
    metrics.add_counts(4, {"broker-started": 1}, {})
    values = samples(metrics)
    assert values["tocsin_events_total", ()] == 14
    assert values["tocsin_rule_matches_total", (("rule", "broker-started"),)] == 3
    assert values["tocsin_rule_matches_total", (("rule", "broker-log-dir-failed"),)] == 1
    assert values["tocsin_late_lines_total", (("stream", "logs-*"),)] == 3


def test_new_streams_beyond_the_most_count_together() -> None:
    metrics = RunMetrics(lambda: NOON)
    for number in range(MOST_STREAMS + 10):
        metrics.read(f"pod-{number}", 2, 100)
    metrics.read("pod-0", 1, 50)
    lines = {labels: value for (name, labels), value in samples(metrics).items() if name == "tocsin_lines_total"}
    assert len(lines) == MOST_STREAMS + 1
    assert lines[(("stream", "pod-0"),)] == 3
    assert lines[(("stream", OTHER_STREAMS),)] == 20


def test_a_delivery_has_a_delay_and_a_refusal_has_none() -> None:
    metrics = RunMetrics(lambda: NOON)
    entry = Delivery("ops", "inc-1", 1, Reason.OPENED, NOON - timedelta(seconds=4), NOON)
    metrics.attempted(entry, DeliveryState.RETRY_LATER)
    metrics.attempted(entry, DeliveryState.DELIVERED)
    values = samples(metrics)
    labels = (("outcome", "delivered"), ("reason", "opened"), ("receiver", "ops"))
    assert values["tocsin_notification_attempts_total", labels] == 1
    assert values["tocsin_notification_attempts_total", (("outcome", "retry_later"), *labels[1:])] == 1
    assert values["tocsin_notification_delay_seconds_sum", (("receiver", "ops"),)] == 4
    assert values["tocsin_notification_delay_seconds_count", (("receiver", "ops"),)] == 1


def test_the_time_from_the_first_line_to_the_message_is_kept_by_receiver() -> None:
    metrics = RunMetrics(lambda: NOON)
    metrics.told("ops", NOON - timedelta(seconds=7))
    values = samples(metrics)
    assert values["tocsin_line_to_delivery_seconds_sum", (("receiver", "ops"),)] == 7
    assert values["tocsin_line_to_delivery_seconds_bucket", (("le", "10.0"), ("receiver", "ops"))] == 1
