"""Which strategy reads a cluster follows from what is known of it, and the reason is said."""

import pytest

from connectors.elasticsearch.facts import (
    ClusterFacts,
    IndexFacts,
    ServerVersion,
    Strategy,
    choose,
    continued,
    index_facts,
    lag_s,
)

ES9 = ServerVersion((9, 5, 3))
PLAIN = IndexFacts("logs-1", "u1")
DENIED = ("status 403: action [indices:monitor/stats] is unauthorized",)


def cluster(*indices: IndexFacts, **changes: object) -> ClusterFacts:
    return ClusterFacts(**{"server": ES9, "indices": indices or (PLAIN,), **changes})  # type: ignore[arg-type]


UNNUMBERED = IndexFacts("metrics-1", "u2", numbered=False)
UNSEEN = IndexFacts("bulk-1", "u3", refresh_s=0)
NO_MONITOR, NO_REFRESH = ("monitor", "status 403"), ("maintenance", "status 403")


@pytest.mark.parametrize(
    ("facts", "strategy", "reason"),
    [
        (cluster(), "sequence", "no late document is missed"),
        (cluster(server=ServerVersion((7, 17, 29))), "sequence", "no late document is missed"),
        (cluster(server=ServerVersion((2, 19, 0), is_opensearch=True)), "sequence", "no late document is missed"),
        (cluster(refused=(NO_REFRESH,)), "sequence", "no late document is missed"),
        (cluster(PLAIN, UNNUMBERED, has_ingested=True), "ingested", "metrics-1 has sequence numbers disabled"),
        (cluster(UNNUMBERED), "timestamp", "there are documents without event.ingested"),
        (cluster(refused=(NO_MONITOR,), has_ingested=True), "ingested", "the privilege `monitor` is missing (status 403)"),
        (cluster(refused=(NO_MONITOR,)), "timestamp", "the privilege `monitor` is missing (status 403), and there are"),
        (
            cluster(UNSEEN, refused=(NO_REFRESH,)),
            "timestamp",
            "bulk-1 never refreshes and the privilege `maintenance` is missing",
        ),
        (cluster(UNSEEN), "sequence", "no late document is missed"),
        (cluster(is_remote=True, has_ingested=True), "ingested", "a remote cluster does not report its checkpoints"),
        (cluster(server=ServerVersion((9, 0, 0), is_serverless=True)), "timestamp", "a serverless project does not report"),
        (ClusterFacts(ES9), "sequence", "no late document is missed"),
    ],
)
def test_the_safest_strategy_that_is_possible_is_chosen(facts: ClusterFacts, strategy: str, reason: str) -> None:
    choice = choose(facts)
    assert choice.strategy == strategy
    assert reason in choice.reason


def test_what_is_configured_is_taken_and_a_reason_against_it_is_said() -> None:
    assert choose(cluster(), "timestamp").reason == "as configured"
    assert choose(cluster(UNNUMBERED), "sequence").reason == ("as configured, although metrics-1 has sequence numbers disabled")


@pytest.mark.parametrize(
    ("strategy", "overlap_s", "sentence"),
    [
        (Strategy.SEQUENCE, None, "read by _seq_no (as configured)"),
        (
            Strategy.INGESTED,
            600.0,
            "read by event.ingested (as configured); documents that become visible later than 10 min after their"
            " event.ingested, or have none, will be missed",
        ),
        (
            Strategy.TIMESTAMP,
            None,
            "read by @timestamp (as configured); LINES THAT COME LATER THAN 15 min AFTER THEIR @timestamp, OR HAVE NONE,"
            " WILL BE MISSED",
        ),
    ],
)
def test_what_a_strategy_misses_is_said(strategy: Strategy, overlap_s: float | None, sentence: str) -> None:
    assert choose(cluster(), strategy, overlap_s).sentence == sentence


def test_what_is_passed_over_and_what_is_missing_is_said() -> None:
    closed, frozen = (
        (IndexFacts(f"logs-{n}", f"c{n}", is_open=False) for n in (2, 3)),
        IndexFacts("logs-4", "f", is_frozen=True),
    )
    slow = IndexFacts("logs-5", "s", refresh_s=30.0)
    assert choose(cluster(*closed, frozen, slow, refused=(NO_REFRESH,))).warnings == (
        "the privilege `maintenance` is missing: lines are read 32 s late, once they are visible by themselves",
        "logs-2, logs-3 are closed and not read",
        "logs-4 is frozen and not read",
    )


def test_the_lag_is_longer_than_the_slowest_refresh() -> None:
    assert lag_s([]) == 3.0
    assert lag_s([PLAIN, IndexFacts("a", "b", refresh_s=0.5)]) == 3.0
    assert lag_s([PLAIN, IndexFacts("a", "b", refresh_s=45.0)]) == 47.0


@pytest.mark.parametrize(
    ("settings", "field", "value"),
    [
        ({"index.refresh_interval": "-1"}, "refresh_s", 0),
        ({"index.refresh_interval": "30s"}, "refresh_s", 30.0),
        ({"index.refresh_interval": "500ms"}, "refresh_s", 0.5),
        ({"index.refresh_interval": "1m"}, "refresh_s", 60.0),
        ({}, "refresh_s", None),
        ({"index.disable_sequence_numbers": "true"}, "numbered", False),
        ({"index.verified_before_close": "true"}, "is_open", False),
        ({"index.frozen": "true"}, "is_frozen", True),
        ({"index.store.type": "snapshot"}, "is_copy", True),
        ({"index.resize.source.uuid": "x"}, "is_copy", True),
        ({"index.number_of_shards": "3"}, "shards", 3),
        ({"index.max_result_window": "500"}, "page_bound", 500),
        ({"index.mode": "logsdb"}, "mode", "logsdb"),
    ],
)
def test_settings_are_read(settings: dict[str, str], field: str, value: object) -> None:
    assert getattr(index_facts("logs", {"index.uuid": "u", **settings}), field) == value


@pytest.mark.parametrize(
    ("facts", "before", "wanted", "sentence", "warning"),
    [
        (cluster(), "sequence", "", "read by _seq_no (no late document is missed)", ""),
        (cluster(), "timestamp", "timestamp", "read by @timestamp (as configured); LINES", ""),
        (
            cluster(),
            "timestamp",
            "",
            "read by @timestamp (as in earlier runs); LINES",
            "write `read_by: sequence` to change to _seq_no",
        ),
        (
            cluster(refused=(NO_MONITOR,)),
            "sequence",
            "",
            "read by _seq_no (as in earlier runs, although the privilege `monitor` is missing (status 403))",
            "write `read_by: timestamp` to change to @timestamp; unread documents are not missed by that",
        ),
        (
            cluster(),
            "sequence",
            "timestamp",
            "read by @timestamp (as configured); LINES",
            "earlier runs read it by _seq_no; it changes to @timestamp, from the oldest unread document on; what is read twice"
            " counts once",
        ),
        (cluster(refused=(NO_MONITOR,)), "sequence", "timestamp", "read by @timestamp (as", "it begins again at `start`"),
        (
            cluster(),
            "ingested",
            "sequence",
            "read by _seq_no (as configured)",
            "from 5 min before its last time on",
        ),
    ],
)
def test_what_was_read_before_goes_on_as_it_was_or_goes_over_and_either_is_said(
    facts: ClusterFacts, before: str, wanted: str, sentence: str, warning: str
) -> None:
    choice = continued(choose(facts, wanted), facts, Strategy(before), wanted)
    assert choice.sentence.startswith(sentence)
    assert warning in "; ".join(choice.warnings)
    assert bool(warning) == bool(choice.warnings)
    assert choice.strategy == (wanted or before)
