"""Risks of connectors: errors that nobody hears of, converters that do not fit, and sizes that do not fit along the path
producer -> topic -> replicas -> consumer."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.incidents import RenderedStep
from engine.risks.cluster import AuditedCluster, AuditedConnector, AuditedTopic, number
from engine.risks.risk import CONNECTOR, TOPIC, Risk, set_connector, set_topic, tool

MAX_REQUEST = "producer.override.max.request.size"
FETCH = "consumer.override.max.partition.fetch.bytes"
_LIMIT, _REPLICA_FETCH = "max.message.bytes", "replica.fetch.max.bytes"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_LOG = "errors.log.enable"
_DEFAULT_REQUEST = 1_048_576  # max.request.size, unless the worker sets another one, which cannot be seen
# what a converter writes and reads; one that reads everything has none
_FORMATS = {
    "JsonConverter": "JSON",
    "AvroConverter": "Avro",
    "ProtobufConverter": "Protobuf",
    "JsonSchemaConverter": "JSON Schema",
}


def tolerates_silently(cluster: AuditedCluster) -> Iterator[Risk]:
    """Connectors that skip records with errors and neither keep nor log them."""
    for connector in cluster.connectors.values():
        settings = connector.settings or {}
        is_logged = settings.get(_LOG, "").lower() == "true"
        has_letters = bool(settings.get(_DEAD_LETTERS)) and connector.kind == "sink"  # those of a source are not used
        if settings.get("errors.tolerance", "").lower() != "all" or is_logged or has_letters:
            continue
        useless = f" ({_DEAD_LETTERS} has no effect at a source)" if settings.get(_DEAD_LETTERS) else ""
        step = set_connector(cluster, connector, {_LOG: "true"}, "Have every skipped record logged")
        yield Risk(
            "errors-tolerated-silently",
            "high",
            CONNECTOR,
            connector.name,
            f"Connector {connector.name} has errors.tolerance=all without errors.log.enable or dead letters{useless}",
            "Records that it cannot convert or transform are skipped, and nobody learns of them: data is lost silently.",
            (step,),
            "Restarts the connector and its tasks with the new setting. The worker's log names skipped records, without"
            f" their content; {_DEAD_LETTERS} keeps them too, at a sink.",
        )


def larger_than_topic(cluster: AuditedCluster) -> Iterator[Risk]:
    """Source connectors whose producer may send larger records than a topic of theirs takes."""
    for connector, topic in _uses(cluster, "source"):
        if connector.settings is None:
            continue
        may_send = number(connector.settings.get(MAX_REQUEST, str(_DEFAULT_REQUEST)))
        takes = cluster.number_of(topic, _LIMIT)
        if may_send is not None and takes is not None and may_send > takes:
            step = set_topic(cluster, topic.name, _LIMIT, may_send, f"Let the topic take what {connector.name} may send")
            yield Risk(
                "sizes-contradict",
                "high",
                CONNECTOR,
                connector.name,
                f"Connector {connector.name} may send records of {may_send:,} bytes (max.request.size), topic {topic.name}"
                f" takes {takes:,} (max.message.bytes{'' if _LIMIT in topic.settings else ', from the brokers'})",
                "The first record between the two is refused by the broker (RecordTooLarge), which kills the task.",
                (step,),
                "The topic takes larger records from everybody, and its consumers get them (max.partition.fetch.bytes).",
            )


def smaller_than_topic(cluster: AuditedCluster) -> Iterator[Risk]:
    """Source connectors whose producer is set to less than what a topic was set to take."""
    for connector, topic in _uses(cluster, "source"):
        may_send = number((connector.settings or {}).get(MAX_REQUEST))
        takes = number(topic.settings.get(_LIMIT))
        if may_send is not None and takes is not None and may_send < takes:
            do = "Let the producer of the connector send what the topic takes"
            yield Risk(
                "sizes-contradict",
                "medium",
                CONNECTOR,
                connector.name,
                f"Topic {topic.name} takes records of {takes:,} bytes (max.message.bytes), connector {connector.name} may send"
                f" {may_send:,} only (max.request.size)",
                "The first record between the two is refused by the connector's own producer, which kills the task.",
                (set_connector(cluster, connector, {MAX_REQUEST: str(takes)}, do),),
                "Restarts the connector and its tasks with the new setting.",
            )


def larger_than_replica_fetch(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics that were set to take larger records than replicas fetch at once."""
    fetched = [value for text in cluster.of_brokers(_REPLICA_FETCH).values() if (value := number(text)) is not None]
    for topic in cluster.topics.values() if fetched else ():
        takes, least = number(topic.settings.get(_LIMIT)), min(fetched)
        if takes is not None and takes > least and topic.copies > 1:
            show = tool(cluster, "kafka-configs.sh", "--describe", "--entity-type", "topics", "--entity-name", topic.name)
            do = "In server.properties of every broker; restart one after the other"
            yield Risk(
                "fetch-below-record",
                "low",
                TOPIC,
                topic.name,
                f"Topic {topic.name} takes records of {takes:,} bytes, replicas fetch {least:,} at once ({_REPLICA_FETCH})",
                "A larger record is copied all the same (since 0.10.1), one at a time: replicas fall behind while many come.",
                (RenderedStep(do=do, where="broker", set={_REPLICA_FETCH: str(takes)}, run=show, changes_state=True),),
                "Replicas need more memory while they fetch. It does not change while a broker runs; the command only shows"
                " the setting of the topic.",
            )


def larger_than_sink_fetch(cluster: AuditedCluster) -> Iterator[Risk]:
    """Sink connectors that are set to fetch less at once than a record of their topics may have, now or once the topic takes
    what its source connectors may send."""
    sent = dict[str, int]()
    for connector, topic in _uses(cluster, "source"):
        sent[topic.name] = max(sent.get(topic.name, 0), number((connector.settings or {}).get(MAX_REQUEST)) or 0)
    for connector, topic in _uses(cluster, "sink"):
        fetches, limit = number((connector.settings or {}).get(FETCH)), cluster.number_of(topic, _LIMIT)
        takes = None if limit is None else max(limit, sent.get(topic.name, 0))
        if fetches is not None and takes is not None and takes > fetches:
            do = "Let the consumer of the connector fetch the largest record at once"
            yield Risk(
                "fetch-below-record",
                "low",
                CONNECTOR,
                connector.name,
                f"Records of {topic.name} may have {takes:,} bytes, connector {connector.name} fetches {fetches:,} at once",
                "A larger record is read all the same (since 0.10.1), one in a request: the sink falls behind while many come.",
                (set_connector(cluster, connector, {FETCH: str(takes)}, do),),
                "Restarts the connector and its tasks with the new setting; each task needs more memory.",
            )


def converters_contradict(cluster: AuditedCluster) -> Iterator[Risk]:
    """Sink connectors that cannot read what a source connector writes into a topic."""
    writers: dict[str, list[AuditedConnector]] = {}
    for connector, topic in _uses(cluster, "source"):
        writers.setdefault(topic.name, []).append(connector)
    for sink, topic in _uses(cluster, "sink"):
        for source in writers.get(topic.name, ()):
            for part in ("value", "key"):
                yield from _misfit(cluster, source, sink, topic, f"{part}.converter")


def _misfit(
    cluster: AuditedCluster, source: AuditedConnector, sink: AuditedConnector, topic: AuditedTopic, setting: str
) -> Iterator[Risk]:
    written, read = _converter(source, setting), _converter(sink, setting)
    with_schemas = f"{setting}.schemas.enable"
    if written in _FORMATS and read in _FORMATS and written != read:
        change, value = setting, (source.settings or {})[setting]
        contrast = f"writes {_FORMATS[written]}, connector {sink.name} reads {_FORMATS[read]} ({setting})"
    elif written == read == "JsonConverter" and not _is_on(source, with_schemas) and _is_on(sink, with_schemas):
        change, value = with_schemas, "false"
        contrast = f"writes JSON without schemas, connector {sink.name} wants it with schemas ({with_schemas})"
    else:
        return
    step = set_connector(cluster, sink, {change: value}, "Have the sink read what the source writes")
    yield Risk(
        "converters-contradict",
        "high",
        CONNECTOR,
        sink.name,
        f"In topic {topic.name}, connector {source.name} {contrast}",
        "The sink cannot convert a single record: its task is killed, or skips all of them if errors.tolerance is all.",
        (step,),
        "Restarts the connector and its tasks with the new setting; records of other formats in its topics are not read then.",
    )


def _converter(connector: AuditedConnector, setting: str) -> str:
    """Return the class of a converter without its package; empty where the worker's own is used, which is not seen."""
    return (connector.settings or {}).get(setting, "").rpartition(".")[2]


def _is_on(connector: AuditedConnector, setting: str) -> bool:
    return (connector.settings or {}).get(setting, "true").lower() == "true"


def _uses(cluster: AuditedCluster, kind: str) -> Iterator[tuple[AuditedConnector, AuditedTopic]]:
    for connector in cluster.connectors.values():
        if connector.kind == kind:
            yield from ((connector, cluster.topics[name]) for name in _topics(connector) if name in cluster.topics)


def _topics(connector: AuditedConnector) -> list[str]:
    """Return the topics that a connector has used, and those that a sink is set to read: none that fails is used."""
    named = (connector.settings or {}).get("topics", "").split(",") if connector.kind == "sink" else []
    return sorted({*connector.topics, *(name.strip() for name in named)})
