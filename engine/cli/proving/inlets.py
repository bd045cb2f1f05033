"""The places at which a line can be put into the sources of a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from engine.config import Settings, SourceSettings
from engine.errors import RuntimeMissing, UsageError
from engine.model.proofs import Proof


class Inlet(Struct, frozen=True):
    """A place of a source that takes a line: the paths of a source, one topic, one pattern of indices.

    `put` takes the proof and its line, and returns where the line is: for a file or topic the name of the stream. It raises
    SourceError when the line cannot be put there, and RuntimeMissing when the package of the source is not installed.
    """

    name: str
    put: Callable[[Proof, str], str]


def inlets(settings: Settings) -> Sequence[Inlet]:
    """Return every inlet of the sources, in their order; containers, journals and servers that are asked have none."""
    return [inlet for source in settings.sources for inlet in _inlets_of(source)]


def chosen_inlet(settings: Settings, name: str) -> Inlet:
    """Return the inlet of which `name` is the name or a part of it; the first one for an empty name.

    Raises UsageError when there is none, or more than one.
    """
    places = inlets(settings)
    if not places:
        raise UsageError("no source takes a line: only those of type files, kafka and elasticsearch do")
    if not name:
        return places[0]
    matching = [inlet for inlet in places if inlet.name == name] or [inlet for inlet in places if name in inlet.name]
    if len(matching) == 1:
        return matching[0]
    problem = "several sources are called so" if matching else "no source that takes a line is called so"
    raise UsageError(f"--source {name}: {problem}; there are: {'; '.join(inlet.name for inlet in matching or places)}")


def _inlets_of(source: SourceSettings) -> Iterator[Inlet]:
    beginning = f"{source.type} {source.scope}"
    if source.type == "files":
        yield Inlet(f"{beginning} {' '.join(source.paths)}", partial(_into_file, source))
    for topic in source.topics:
        yield Inlet(f"{beginning} {topic}", partial(_into_topic, source, topic))
    for pattern in source.indices:
        yield Inlet(f"{beginning} {pattern}", partial(_into_index, source, pattern))


def _into_file(source: SourceSettings, _proof: Proof, line: str) -> str:
    from connectors.files.proving import put_line  # noqa: PLC0415

    return str(put_line(source.paths, line))


def _into_topic(source: SourceSettings, topic: str, _proof: Proof, line: str) -> str:
    try:
        from connectors.kafka.proving import put_line  # noqa: PLC0415  (needs the extra)
    except ImportError:
        raise RuntimeMissing("a source of type kafka needs confluent-kafka: pip install 'tocsin[kafka]'") from None
    return put_line(source.bootstrap_servers, source.options, topic, line)


def _into_index(source: SourceSettings, pattern: str, proof: Proof, line: str) -> str:
    try:
        from connectors.elasticsearch.connection import ElasticsearchConnection  # noqa: PLC0415  (needs the extra)
        from connectors.elasticsearch.proving import put_document  # noqa: PLC0415
    except ImportError:
        raise RuntimeMissing("a source of type elasticsearch needs the package: pip install 'tocsin[elasticsearch]'") from None
    at = json.loads(line)["@timestamp"]
    connection = ElasticsearchConnection(**source.connection)
    return put_document(connection, pattern, f"tocsin-{proof.nonce}", at, line, source.query)
