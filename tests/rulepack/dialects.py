"""What each dialect makes of the settings and commands of the rule in test_dialects.py, with a line that shows who speaks."""

from __future__ import annotations

from collections.abc import Mapping

JAVA = [
    {"max.poll.records": "1", "session.timeout.ms": "120000"},
    {"max.request.size": "2097152"},
    {"request.timeout.ms": "60000"},
    {"group.id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
    {"log.dirs": "/data", "controller.quorum.voters": "1@a:9093"},
    {"producer.max.request.size": "2097152"},
    {},
    {"snapshot.mode": "initial"},
    *[{}] * 5,
]
POLL, SEND, WAIT, LEAD, MOVE, OPEN, SPEAK, READ, AGAIN, LOOK, ALLOW, REACH, RESET = range(len(JAVA))
OWN = {"main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"}
ADDRESS = "--bootstrap-server k:9092"
COMMANDS = {
    AGAIN: "curl -X POST http://c:8083/connectors/cdc/restart",
    LOOK: f"kafka-topics.sh {ADDRESS} --describe --topic orders",
    ALLOW: f"kafka-acls.sh {ADDRESS} --list",
    REACH: f"kafka-broker-api-versions.sh {ADDRESS}",
    RESET: f"kafka-consumer-groups.sh {ADDRESS} --reset-offsets",
}
SIGNED_IN = {
    step: command.replace("k:9092", "k:9092 --command-config client.properties")
    for step, command in COMMANDS.items()
    if "--bootstrap-server k:9092" in command
}
# dialect -> step -> its command there; empty where it does not work
SPOKEN_COMMANDS: Mapping[str, Mapping[int, str]] = {
    **{name: {AGAIN: ""} for name in ("airbyte", "nifi", "debezium-server", "debezium-engine", "flink")},
    **{name: {ALLOW: ""} for name in ("heroku", "msk-iam")},
    **{name: {**SIGNED_IN, ALLOW: ""} for name in ("confluent-cloud", "event-hubs")},  # they have no listener without a login
    "rpk": {LOOK: "rpk topic describe orders", REACH: "rpk cluster info -X brokers=k:9092"},
    "scala-clients": {LOOK: "kafka-topics.sh --zookeeper ${zookeeper:?} --describe --topic orders", REACH: "", RESET: ""},
    "kafka-until-0-10": {LOOK: "kafka-topics.sh --zookeeper ${zookeeper:?} --describe --topic orders", REACH: "", RESET: ""},
    "kafka-until-2-1": {LOOK: "kafka-topics.sh --zookeeper ${zookeeper:?} --describe --topic orders"},
    "windows": {
        step: f"bin\\windows\\{command.replace('.sh', '.bat')}" for step, command in COMMANDS.items() if ".sh " in command
    },
}
OF_HISTORY = "schema.history.internal"
OF_SINK, OF_SOURCE = "consumer.override.request.timeout.ms", "producer.override.request.timeout.ms"
# dialect -> (line, labels, step -> its settings)
SPOKEN: Mapping[str, tuple[str, Mapping[str, str], Mapping[int, Mapping[str, str]]]] = {
    "spring": (
        "2024-03-12 10:15:00.123  WARN 1 --- [ntainer#1-0-C-1] o.a.k.c.c.internals.ConsumerCoordinator  : TROUBLE",
        {},
        {
            POLL: {
                "spring.kafka.consumer.max-poll-records": "1",
                "spring.kafka.consumer.properties.session.timeout.ms": "120000",
            },
            SEND: {"spring.kafka.producer.properties.max.request.size": "2097152"},
            WAIT: {"spring.kafka.properties.request.timeout.ms": "60000"},
            LEAD: {"spring.kafka.consumer.group-id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "spring-streams": (
        "2024-03-12 10:15:00.123  WARN 1 --- [-StreamThread-1] o.a.k.c.c.internals.ConsumerCoordinator  : TROUBLE",
        {},
        {
            POLL: {
                "spring.kafka.streams.properties.main.consumer.max.poll.records": "1",
                "spring.kafka.streams.properties.main.consumer.session.timeout.ms": "120000",
            },
            SEND: {"spring.kafka.streams.properties.producer.max.request.size": "2097152"},
            WAIT: {"spring.kafka.streams.properties.request.timeout.ms": "60000"},
            LEAD: {"main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "spring-cloud-stream": (
        "2024-03-12 10:15:00.123 ERROR 1 --- [main] o.s.c.s.b.k.p.KafkaTopicProvisioner : TROUBLE",
        {},
        {
            POLL: {
                "spring.cloud.stream.kafka.binder.consumer-properties.max.poll.records": "1",
                "spring.cloud.stream.kafka.binder.consumer-properties.session.timeout.ms": "120000",
            },
            SEND: {"spring.cloud.stream.kafka.binder.producer-properties.max.request.size": "2097152"},
            WAIT: {"spring.cloud.stream.kafka.binder.configuration.request.timeout.ms": "60000"},
            LEAD: {
                "spring.cloud.stream.kafka.binder.consumer-properties.group.id": "g",
                "main.consumer.fetch.min.bytes": "1",
                "my.own.setting": "x",
            },
        },
    ),
    "streams": (
        "[2024-11-15 10:55:30,336] WARN [Consumer clientId=t-1-StreamThread-2-consumer, groupId=t] TROUBLE",
        {},
        {
            POLL: {"main.consumer.max.poll.records": "1", "main.consumer.session.timeout.ms": "120000"},
            SEND: {"producer.max.request.size": "2097152"},
            LEAD: {"main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "quarkus": (
        "2024-05-21 12:47:08,123 WARN  [io.sma.rea.mes.kafka] (vert.x-eventloop-thread-1) SRMSG18228: TROUBLE",
        {},
        {
            POLL: {
                "mp.messaging.incoming.<channel>.max.poll.records": "1",
                "mp.messaging.incoming.<channel>.session.timeout.ms": "120000",
            },
            SEND: {"mp.messaging.outgoing.<channel>.max.request.size": "2097152"},
            WAIT: {"kafka.request.timeout.ms": "60000"},
            LEAD: {
                "mp.messaging.incoming.<channel>.group.id": "g",
                "main.consumer.fetch.min.bytes": "1",
                "my.own.setting": "x",
            },
        },
    ),
    "connect-task": (
        "[2023-02-03 02:05:02,285] ERROR WorkerSourceTask{id=cdc-0} TROUBLE (org.apache.kafka.connect.runtime.WorkerTask)",
        {},
        {
            POLL: {"consumer.override.max.poll.records": "1", "consumer.override.session.timeout.ms": "120000"},
            SEND: {"producer.override.max.request.size": "2097152"},
            WAIT: {f"{OF_SINK} (of a sink) or {OF_SOURCE} (of a source)": "60000"},
            LEAD: {"consumer.override.group.id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "librdkafka": (
        "%4|1584796667.962|MAXPOLL|rdkafka#consumer-1| [thrd:main]: TROUBLE",
        {},
        {POLL: {"session.timeout.ms": "120000"}, SEND: {"message.max.bytes": "2097152"}},
    ),
    "fluent-bit": (
        "[2024/08/14 10:55:12] [error] [output:kafka:kafka.0] fluent-bit#producer-1: [thrd:app]: TROUBLE",
        {},
        {
            POLL: {"rdkafka.session.timeout.ms": "120000"},
            SEND: {"rdkafka.message.max.bytes": "2097152"},
            WAIT: {"rdkafka.request.timeout.ms": "60000"},
            LEAD: {"group_id": "g", **OWN},
        },
    ),
    "faust": (
        "[2018-06-09 09:01:27,183: ERROR]: [^--Consumer]: TROUBLE",
        {},
        {
            POLL: {"broker_max_poll_records": "1"},
            SEND: {"producer_max_request_size": "2097152"},
            WAIT: {},
            LEAD: {"main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "kafka-python": (
        "2024-07-28 11:06:58,309 - WARNING - kafka.errors.CommitFailedError: TROUBLE",
        {},
        {
            POLL: {"max_poll_records": "1", "session_timeout_ms": "120000"},
            SEND: {"max_request_size": "2097152"},
            WAIT: {"request_timeout_ms": "60000"},
            LEAD: {"group_id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "flink": (
        "2024-05-21 12:47:08,123 WARN  org.apache.flink.connector.kafka.sink.KafkaCommitter [] - TROUBLE",
        {},
        {
            POLL: {"properties.max.poll.records": "1", "properties.session.timeout.ms": "120000"},
            SEND: {"properties.max.request.size": "2097152"},
            WAIT: {"properties.request.timeout.ms": "60000"},
            LEAD: {"properties.group.id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
            READ: {"debezium.snapshot.mode": "initial"},
        },
    ),
    "windows": ("[2024-05-21 12:47:08,123] ERROR TROUBLE in dir C:\\kafka\\logs (kafka.server.LogDirFailureChannel)", {}, {}),
    "airbyte": ("2024-05-21 12:47:08 source > TROUBLE io.airbyte.cdk.integrations", {}, {READ: {}}),
    "nifi": ("2017-04-06 21:07:28,262 ERROR [Timer-Driven-9] o.a.n.c.m.processors.CaptureChangeMySQL TROUBLE", {}, {READ: {}}),
    "debezium-server": (
        "2023-07-19 21:12:30,998 ERROR [io.debezium.server.ConnectorLifecycle] (pool-7-thread-1) TROUBLE",
        {},
        {READ: {"debezium.source.snapshot.mode": "initial"}},
    ),
    "debezium-engine": ("2023-02-01 10:00:00,000 ERROR [pool-2] io.debezium.embedded.EmbeddedEngine - TROUBLE", {}, {}),
    "heroku": ("2023-12-22T05:03:47.986876+00:00 app[web.1]: ERROR TROUBLE", {}, {}),
    "confluent-cloud": ("ERROR TROUBLE at pkc-xxxxx.us-east-1.aws.confluent.cloud:9092", {}, {}),
    "msk-iam": ("ERROR TROUBLE at b-1.shop.abcdef.c2.kafka.us-east-1.amazonaws.com:9098", {}, {}),
    "event-hubs": ("ERROR TROUBLE at shop.servicebus.windows.net:9093", {}, {}),
    "ibm-event-streams": ("ERROR TROUBLE at es-ibm-es-kafka-sts-0.es-ibm-es-kafka-headless-svc.es.svc:8084", {}, {}),
    "scala-clients": (
        "[2015-06-02 10:30:14,027] ERROR TROUBLE (kafka.producer.async.DefaultEventHandler)",
        {},
        {POLL: {"zookeeper.session.timeout.ms": "120000"}, SEND: {}},
    ),
    "kafka-until-0-10": (
        "TROUBLE org.apache.kafka.common.errors.GroupCoordinatorNotAvailableException: The group coordinator is not available.",
        {},
        {},
    ),
    "debezium-history": (
        "[2023-02-03 02:05:02,285] WARN [Consumer clientId=shop-schemahistory, groupId=shop-schemahistory] TROUBLE",
        {},
        {
            POLL: {f"{OF_HISTORY}.consumer.max.poll.records": "1", f"{OF_HISTORY}.consumer.session.timeout.ms": "120000"},
            SEND: {f"{OF_HISTORY}.producer.max.request.size": "2097152"},
            WAIT: {f"{OF_HISTORY}.consumer.request.timeout.ms and {OF_HISTORY}.producer.request.timeout.ms": "60000"},
            LEAD: {f"{OF_HISTORY}.consumer.group.id": "g", **OWN},
        },
    ),
    "kafka-until-2-1": (
        "[2017-03-01 10:00:00,000] WARN Partition [orders,3] on broker 1: TROUBLE (kafka.cluster.Partition)",
        {},
        {},
    ),
    "rpk": ("ERROR TROUBLE unable to request metadata: unable to dial: dial tcp 127.0.0.1:9093", {}, {}),
    "kafkajs": (
        '{"level":"ERROR","timestamp":"2023-10-06T12:00:50.029Z","logger":"kafkajs","message":"TROUBLE KafkaJSError"}',
        {},
        {POLL: {"sessionTimeout": "120000"}, WAIT: {"requestTimeout": "60000"}, LEAD: {"groupId": "g", **OWN}},
    ),
    "sarama": (
        "2020-08-05 00:14:12 ERROR TROUBLE kafka server: Tried to send a message to a replica that is not the leader",
        {},
        {POLL: {"Consumer.Group.Session.Timeout": "120000ms"}, SEND: {"Producer.MaxMessageBytes": "2097152"}},
    ),
    "kafka-go": (
        "2023/01/01 10:00:00 TROUBLE [6] Not Leader For Partition: the client attempted to send messages",
        {},
        {POLL: {"SessionTimeout": "120000ms"}, SEND: {"BatchBytes": "2097152"}, LEAD: {"GroupID": "g", **OWN}},
    ),
    "franz-go": (
        "[ERROR] TROUBLE in default commit: unable to commit offsets for topic partition; group: g, topic: t, partition: 5",
        {},
        {POLL: {"kgo.SessionTimeout": "120000ms"}, LEAD: {"kgo.ConsumerGroup": "g", **OWN}},
    ),
    "clickhouse": (
        "2021.12.28 14:00:16.096987 [ 32591 ] {} <Warning> StorageKafka (t_kafka): TROUBLE",
        {},
        {
            POLL: {"session_timeout_ms": "120000"},
            SEND: {"message_max_bytes": "2097152"},
            WAIT: {"request_timeout_ms": "60000"},
            LEAD: {"group_id": "g", **OWN},
        },
    ),
    "ksqldb": (
        "[2019-05-28 08:24:28,703] WARN TROUBLE in /data/_confluent-ksql-prod-ksqlquery_CTAS_T_12/0_8",
        {},
        {
            POLL: {"ksql.streams.consumer.max.poll.records": "1", "ksql.streams.consumer.session.timeout.ms": "120000"},
            SEND: {"ksql.streams.producer.max.request.size": "2097152"},
            WAIT: {"ksql.streams.request.timeout.ms": "60000"},
            LEAD: OWN,
        },
    ),
    "kafka-node": (
        "2 Mar 09:55:01 - ERROR TROUBLE /app/node_modules/kafka-node/lib/kafkaClient.js",
        {},
        {POLL: {"sessionTimeout": "120000"}, WAIT: {"requestTimeout": "60000"}, LEAD: {"groupId": "g", **OWN}},
    ),
    "ruby-kafka": (
        '2017-03-07 16:06:47 +0100 [error]: TROUBLE error_class="Kafka::MessageSizeTooLarge"',
        {},
        {POLL: {}, SEND: {}, WAIT: {}, LEAD: {"group_id": "g", **OWN}},
    ),
    "brod": ("2024-01-01 10:00:00 ERROR TROUBLE :brod_client is terminating", {}, {POLL: {}}),
    "maxwell": (
        "17:24:30,123 ERROR MaxwellKafkaProducer - TROUBLE",
        {},
        {SEND: {"kafka.max.request.size": "2097152"}, WAIT: {"kafka.request.timeout.ms": "60000"}},
    ),
    "logstash": (
        "[2018-06-13T22:01:44,868][WARN ][logstash.outputs.kafka   ] TROUBLE",
        {},
        {
            POLL: {"max_poll_records": "1", "session_timeout_ms": "120000"},
            SEND: {"max_request_size": "2097152"},
            WAIT: {"request_timeout_ms": "60000"},
            LEAD: {"group_id": "g", **OWN},
        },
    ),
    "otel-collector": (
        "2024-05-21T12:47:08.123Z\terror\tkafkaexporter@v0.98.0/kafka_exporter.go:52\tTROUBLE",
        {},
        {
            POLL: {"session_timeout": "120000ms"},
            SEND: {"producer.max_message_bytes": "2097152"},
            LEAD: {"group_id": "g", "main.consumer.fetch.min.bytes": "1", "my.own.setting": "x"},
        },
    ),
    "strimzi": (
        "[2024-05-21 12:47:08,123] WARN TROUBLE with a-kafka-0.a-kafka-brokers.kafka.svc",
        {},
        {MOVE: {}},
    ),
    "confluent-image": (
        "[2024-05-21 12:47:08,123] WARN TROUBLE (kafka.server.KafkaServer)",
        {"image": "confluentinc/cp-kafka:7.6.0"},
        {MOVE: {"KAFKA_LOG_DIRS": "/data", "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093"}},
    ),
    "connect-image": (
        "[2024-05-21 12:47:08,123] WARN TROUBLE (org.apache.kafka.connect.runtime.Worker)",
        {"image": "confluentinc/cp-kafka-connect:7.6.0"},
        {OPEN: {"CONNECT_PRODUCER_MAX_REQUEST_SIZE": "2097152"}},
    ),
    "bitnami-image": (
        "kafka 10:02:17.50 ERROR ==> TROUBLE",
        {},
        {MOVE: {"KAFKA_CFG_LOG_DIRS": "/data", "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "1@a:9093"}},
    ),
}
NO_DIALECT = {
    "a plain client of Java": "[2024-05-21 12:47:08,123] WARN [Consumer clientId=c, groupId=g] TROUBLE",
    "a broker": "[2024-05-21 12:47:08,123] WARN [ReplicaManager broker=1] TROUBLE (kafka.server.ReplicaManager)",
    "an application of Spring without Spring Kafka": "2024-03-12 10:15:00.123  WARN 1 --- [main] c.acme.Orders : TROUBLE",
    "two in one line": "2024-07-28 11:06:58,309 - WARNING - kafka.errors.CommitFailedError: TROUBLE [thrd:main]",
}
