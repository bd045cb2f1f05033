"""Determine the facts about a cluster before it is read: its indices, and the missing privileges."""

from __future__ import annotations

from collections.abc import Callable

from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.facts import ClusterFacts, IndexFacts
from engine.errors import SourceDenied

LAST_DAY = "now-1d"


def probe(cluster: SearchCluster, pattern: str) -> ClusterFacts:
    """Return the facts about the indices that `pattern` matches. Missing privileges are determined by trying, which works alike
    in every version and in OpenSearch.

    Raises SourceError when the cluster does not answer.
    """
    server, is_remote = cluster.server(), ":" in pattern
    refused: list[tuple[str, str]] = []
    indices: tuple[IndexFacts, ...] = ()
    if not is_remote and not server.is_serverless:

        def tried(privilege: str, request: Callable[[], object]) -> None:
            try:
                request()
            except SourceDenied as denied:
                refused.append((privilege, str(denied)))

        try:
            indices = cluster.indices(pattern)
        except SourceDenied as denied:
            refused.append(("monitor", str(denied)))
        else:
            names = [index.name for index in indices if index.readable]
            tried("monitor", lambda: cluster.checkpoints(pattern, IndexFacts))
            tried("maintenance", lambda: cluster.refresh(names))
    by_time = is_remote or server.is_serverless or any(name == "monitor" for name, _ in refused) or not _numbered(indices)
    has_ingested = by_time and _has_ingested(cluster, pattern)
    return ClusterFacts(server, indices, tuple(refused), is_remote, has_ingested)


def _numbered(indices: tuple[IndexFacts, ...]) -> bool:
    return all(index.numbered and index.refresh_s != 0 for index in indices)


def _has_ingested(cluster: SearchCluster, pattern: str) -> bool:
    """Return whether there are documents with `event.ingested`, and every document of the last day has it."""
    has, late = {"exists": {"field": "event.ingested"}}, {"range": {"@timestamp": {"gte": LAST_DAY}}}
    lacking = {"bool": {"filter": [late], "must_not": [has]}}
    return cluster.count(pattern, has, most=1) > 0 and cluster.count(pattern, lacking, most=1) == 0
