"""Looking at a cluster before it is read: what there is, what is allowed, and which strategy follows from it."""

from __future__ import annotations

from collections.abc import Callable

from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.facts import ClusterFacts, IndexFacts
from engine.errors import SourceDenied

OF_LATE = "now-1d"


def probe(cluster: SearchCluster, pattern: str) -> ClusterFacts:
    """Return what there is of `pattern`. What is not allowed is found by trying: it is the same on every version and in
    OpenSearch.

    Raises SourceError when the cluster cannot be asked at all.
    """
    server, is_remote = cluster.server(), ":" in pattern
    refused: list[tuple[str, str]] = []
    indices: tuple[IndexFacts, ...] = ()
    if not is_remote and not server.is_serverless:

        def tried(privilege: str, question: Callable[[], object]) -> None:
            try:
                question()
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
    bears = by_time and _bears_ingested(cluster, pattern)
    return ClusterFacts(server, indices, tuple(refused), is_remote, bears)


def _numbered(indices: tuple[IndexFacts, ...]) -> bool:
    return all(index.numbered and index.refresh_s != 0 for index in indices)


def _bears_ingested(cluster: SearchCluster, pattern: str) -> bool:
    """Return whether every document of the last day has `event.ingested`, and there is one."""
    has, late = {"exists": {"field": "event.ingested"}}, {"range": {"@timestamp": {"gte": OF_LATE}}}
    lacking = {"bool": {"filter": [late], "must_not": [has]}}
    return cluster.count(pattern, has, most=1) > 0 and cluster.count(pattern, lacking, most=1) == 0
