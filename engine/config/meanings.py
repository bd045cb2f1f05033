"""The meaning of every key of tocsin.yml in one sentence, and an example: for editors (the JSON Schema) and people
(docs/configuration.md)."""

from __future__ import annotations

from collections.abc import Mapping

Described = tuple[str, str]  # meaning, and an example in YAML

_SOURCE: Mapping[str, Described] = {
    "type": (
        "Where the lines are: files, docker, kubernetes, journald, kafka, elasticsearch, connect or kafka-cluster.",
        "files",
    ),
    "labels": (
        "Labels of its lines: fixed text, or parts of the input in braces (docs/sources.md). `cluster` is the scope of "
        "correlation, `default` if not given.",
        '{cluster: prod, broker: "{path:broker-(\\\\d+)}"}',
    ),
    "timezone": ("The zone of stamps without one.", "Asia/Seoul"),
    "stamps": ("The bounds of plausible stamps.", "{earliest: 2015-01-01}"),
    "may_speak_for": (
        "Components, or members of one, that its lines speak for, or an empty list (docs/security.md). If not given: all.",
        "[broker, connect]",
    ),
    "start": (
        "Where a first run starts: earliest, latest, a duration back from now, or a time with a zone. If not given: 1h, and "
        "with --once the beginning.",
        "2h",
    ),
}
_LOCAL: Mapping[str, Described] = {
    "root": ("Another folder than the usual one.", "/data/docker"),
    "containers": ("Patterns of names of containers; one that begins with ! excludes.", '["kafka-*", "!kafka-ui"]'),
}
_CONNECTION: Mapping[str, Described] = {
    "url": ("The address of the cluster, or a list of the addresses of several nodes.", '"https://es.example:9200"'),
    "api_key": ("The API key, encoded or as id:key; instead of `user` and `password`.", '"env:ES_API_KEY"'),
    "user": ("The user.", "tocsin"),
    "password": ("The password of `user`.", '"env:ES_PASSWORD"'),
    "ca": ("The certificates, in PEM, that verify the server's. If not given: those of the system.", '"file:ca.pem"'),
    "unprotected": ("Whether secrets may be sent over http.", "false"),
}
_ASKED: Mapping[str, Described] = {
    **{key: described for key, described in _SOURCE.items() if key != "start"},
    "start": ("Not for this source: a server is asked about the present only.", "latest"),
    "every": ("The time between two rounds of questions, 5s or more.", "1m"),
    "record": ("The file that the answers are appended to; `tocsin scan` reads it. If not given: none.", "answers.log"),
}
_ROUTE: Mapping[str, Described] = {
    "receiver": ("The receiver that is notified. If not given: that of the route above.", "kafka-ops"),
    "matchers": (
        "Conditions on labels, all of which must hold: = != =~ !~.",
        "['component=\"connect\"', 'severity=~\"high|critical\"']",
    ),
    "continue": ("Whether later routes beside it are tried too.", "true"),
    "group_wait": ("The wait before the first notification; 30s unless a route above sets it.", "10s"),
    "group_interval": ("The wait between notifications of changes; 5m unless a route above sets it.", "10m"),
    "repeat_interval": ("When an open incident is notified again, 0s for never; 4h unless a route above sets it.", "1d"),
    "mute_time_intervals": ("Time intervals in which nothing is sent.", "[nights]"),
    "active_time_intervals": ("Time intervals outside of which nothing is sent.", "[office]"),
    "routes": ("Branches; the first that holds takes the incident.", "[{matchers: [cluster=prod], receiver: pager}]"),
}

# class of a model -> key -> meaning and example
MEANINGS: Mapping[str, Mapping[str, Described]] = {
    "ConfigFile": {
        "clusters": (
            "Values for the incidents of each cluster, by its name.",
            '{prod: {brokers: [1, 2, 3], bootstrap: "kafka-1:9092"}}',
        ),
        "sources": ("Where the logs are (docs/sources.md).", "[{type: files, paths: [/var/log/kafka]}]"),
        "rules": ("Folders of rules; `builtin` stands for the shipped ones.", "[builtin, ./rules]"),
        "overrides": ("Changes to rules, by id.", "{broker-silent: {severity: high}}"),
        "audit": (
            "What `tocsin audit` leaves out, and who is told what may break (docs/audit.md).",
            '{ignore: [{topics: ["tmp.*"], reason: can be rebuilt}]}',
        ),
        "route": ("Who is notified of what. If not given: the first receiver that keeps no record.", "{receiver: kafka-ops}"),
        "time_intervals": ("Named sets of times, for routes.", "[{name: nights, time_intervals: [{weekdays: [sunday]}]}]"),
        "notify_storm": (
            "The most new incidents of one rule or cluster within a minute with a message each; more are one message. 0: no "
            "limit.",
            "10",
        ),
        "notify_max_age": (
            "From which age on incidents come in a digest only; 0s: never. If not given: 1h, and with --once never.",
            "2h",
        ),
        "receivers": ("Who can be notified. If not given: the terminal.", "[{name: kafka-ops, terminal: {}}]"),
        "store": (
            "Where incidents are stored: an address, or a map with `url` and `password`. A path with three slashes is relative "
            "to this file.",
            "sqlite:////var/lib/tocsin/tocsin.db",
        ),
        "retention": ("How long ended incidents are stored; 0s: for ever.", "30d"),
        "redact": ("What is masked in log text besides secrets.", "{phone: true}"),
        "spark": ("The resources of the job, and its checkpoint.", "{cores: 4}"),
        "web": ("The pages.", '{public_url: "https://tocsin.example"}'),
        "kibana": (
            "A Kibana that has the logs, for links (docs/kibana.md).",
            '{url: "https://kibana.example", indices: ["logs-*"]}',
        ),
        "metrics": ("Metrics and health of a run (docs/metrics.md). If not given: none.", '{listen: "127.0.0.1:9464"}'),
        "heartbeat": (
            "A dead man's switch, called while all parts of a run work (docs/metrics.md).",
            '{url: "env:HEARTBEAT_URL", every: 1m}',
        ),
    },
    "ClusterEntry": {
        "brokers": ("The ids of the brokers that are expected to print.", "[1, 2, 3]"),
        "bootstrap": ("The bootstrap servers, for the commands of fixes.", '"kafka-1:9092"'),
        "connect_url": ("The address of Connect's REST API, for the commands of fixes.", '"http://connect:8083"'),
    },
    "FilesEntry": {
        **_SOURCE,
        "paths": ("Files, folders and patterns.", '[/var/log/kafka, "/srv/*/logs/*.log*"]'),
    },
    "DockerEntry": {
        **_SOURCE,
        **_LOCAL,
        "type": (_SOURCE["type"][0], "docker"),
        "images": ("Patterns of names of images.", '["apache/kafka*"]'),
        "projects": ("Patterns of Compose projects.", "[shop]"),
        "services": ("Patterns of Compose services.", "[broker]"),
    },
    "KubernetesEntry": {
        **_SOURCE,
        **_LOCAL,
        "type": (_SOURCE["type"][0], "kubernetes"),
        "namespaces": ("Patterns of namespaces.", "[kafka]"),
        "pods": ("Patterns of names of pods.", '["kafka-*"]'),
    },
    "JournaldEntry": {
        **_SOURCE,
        **_LOCAL,
        "type": (_SOURCE["type"][0], "journald"),
        "units": ("Patterns of units; `kafka` means `kafka.service`.", "[kafka, connect]"),
    },
    "KafkaEntry": {
        **_SOURCE,
        "type": (_SOURCE["type"][0], "kafka"),
        "labels": (_SOURCE["labels"][0], '{cluster: prod, broker: "{key:broker-(\\\\d+)}"}'),
        "bootstrap_servers": ("The addresses of brokers.", '"kafka-1:9092,kafka-2:9092"'),
        "topics": ("The names of topics, no patterns.", "[logs.kafka]"),
        "options": (
            "Options of librdkafka; passwords as env:NAME or file:PATH.",
            '{security.protocol: SASL_SSL, sasl.password: "env:KAFKA_PASSWORD"}',
        ),
    },
    "ElasticsearchSourceEntry": {
        **_SOURCE,
        **_CONNECTION,
        "type": (_SOURCE["type"][0], "elasticsearch"),
        "labels": (_SOURCE["labels"][0], '{cluster: prod, broker: "{field:kafka.broker}"}'),
        "indices": ("Names or patterns of indices; each is a source by itself.", '["logs-kafka-*"]'),
        "query": ("Which documents are read, in the query DSL. If not given: all.", "{term: {event.dataset: kafka.log}}"),
        "read_by": ("sequence, ingested or timestamp. If not given: the safest that is possible.", "ingested"),
        "overlap": ("For how long late documents are searched for, by ingested (5m) and timestamp (15m).", "30m"),
    },
    "ClusterSourceEntry": {
        **_ASKED,
        "bootstrap_servers": ("Addresses of brokers, with commas between.", "kafka-1:9092,kafka-2:9092"),
        "options": ("Options as librdkafka spells them, such as those of TLS and SASL.", "{security.protocol: SSL}"),
    },
    "ConnectSourceEntry": {
        **_ASKED,
        "url": (
            "The address of a worker's REST, or a list of the addresses of several workers.",
            '"https://connect.example:8083"',
        ),
        "user": ("The user, with basic authentication.", "tocsin"),
        "password": ("The password of `user`.", '"env:CONNECT_PASSWORD"'),
        "ca": ("The certificates, in PEM, that verify the server's. If not given: those of the system.", '"file:ca.pem"'),
        "unprotected": ("Whether secrets may be sent over http.", "false"),
    },
    "StampsEntry": {
        "earliest": ("Earlier stamps are no stamps; 1990 if not given.", "2015-01-01"),
        "ahead": (
            "Stamps that are further ahead of the time at which the line was taken are no stamps; a day if not given.",
            "1h",
        ),
    },
    "AuditEntry": {
        "ignore": ("Risks that are accepted.", '[{topics: ["tmp.*"], reason: can be rebuilt}]'),
        "digest": ("Who is sent what may break in the clusters that are asked; nobody if not given.", "{receiver: kafka-ops}"),
    },
    "AuditDigestEntry": {
        "receiver": ("The receiver of the digest, whatever routes say; it keeps no record.", "kafka-ops"),
        "at": (
            "The time of the day in UTC from which a digest is sent, if the risks have changed since the last one.",
            '"08:00"',
        ),
    },
    "IgnoreEntry": {
        "checks": ("The checks that are left out; all if not given.", "[topic-one-replica]"),
        "topics": ("Patterns of topics, in which * stands for any text. Without any pattern, all subjects.", '["tmp.*"]'),
        "groups": ("Patterns of consumer groups.", '["console-consumer-*"]'),
        "connectors": ("Patterns of connectors.", '["test-*"]'),
        "reason": ("Why it is no risk here; the report shows it.", "can be rebuilt"),
    },
    "OverrideEntry": {
        "disabled": ("Whether the rule is off.", "true"),
        "severity": ("Another severity.", "low"),
        "labels": ("Labels that are added, to route by.", "{team: data}"),
        "except": ("Events that do not count, written as a detection item (docs/rules.md).", '{labels.topic: "test-*"}'),
        "unless": ("An expression over the captures; when it is true the event does not count.", "count < 5"),
    },
    "RootEntry": {
        **_ROUTE,
        "receiver": ("The receiver of every incident that no branch takes.", "kafka-ops"),
        "group_wait": ("The wait before the first notification; 30s if not given.", "10s"),
        "group_interval": ("The wait between notifications of changes; 5m if not given.", "10m"),
        "repeat_interval": ("When an open incident is notified again, 0s for never; 4h if not given.", "1d"),
    },
    "RouteEntry": _ROUTE,
    "IntervalEntry": {
        "name": ("Its name in routes.", "nights"),
        "time_intervals": ("Spans; a time is in the interval when it is in one of them.", '[{weekdays: ["monday:friday"]}]'),
    },
    "SpanEntry": {
        "times": ("Parts of the day; the end is left out.", '[{start_time: "22:00", end_time: "24:00"}]'),
        "weekdays": ("Days of the week, or ranges of them.", '["monday:friday"]'),
        "days_of_month": ("Days of the month, -1 is the last.", '["1:5", "-1"]'),
        "months": ("Months, by name or number.", '["january:march"]'),
        "years": ("Years.", '["2026:2027"]'),
        "location": ("The time zone.", "Asia/Seoul"),
    },
    "TimesEntry": {
        "start_time": ("When it begins.", '"09:00"'),
        "end_time": ("When it ends; the end of the day is 24:00.", '"18:00"'),
    },
    "ReceiverEntry": {
        "name": ("Its name in routes.", "kafka-ops"),
        "fallback": ("The receiver that is notified when this one refuses.", "pager"),
        "language": ("The language of its messages: en, if not given, or ko.", "ko"),
        "terminal": ("Prints to the terminal.", "{}"),
        "slack": ("A Slack channel.", '{channel: "#kafka-ops", token: "env:SLACK_BOT_TOKEN"}'),
        "webhook": ("An address that JSON is posted to.", '{url: "https://pager.example/in"}'),
        "elasticsearch": ("Indices that keep a record of every incident.", '{url: "https://es.example:9200"}'),
        "pagerduty": ("A service of PagerDuty, by its Events API v2.", '{routing_key: "env:PAGERDUTY_KEY"}'),
        "alertmanager": ("An Alertmanager of Prometheus, which routes further.", '{url: "http://alertmanager:9093"}'),
        "email": ("Mail.", '{to: oncall@kafka.example, from: tocsin@kafka.example, smtp: "mail.example:587"}'),
        "teams": ("A channel of Microsoft Teams, by the webhook of a workflow.", '{webhook_url: "env:TEAMS_URL"}'),
    },
    "PagerDutyEntry": {
        "routing_key": ("The integration key of the service.", '"env:PAGERDUTY_KEY"'),
        "base_url": ("The address of the Events API; another one outside of the US.", '"https://events.eu.pagerduty.com"'),
    },
    "AlertmanagerEntry": {
        "url": ("Its address; env:NAME or file:PATH when it holds a password.", '"http://alertmanager:9093"'),
        "token": ("Sent as Authorization: Bearer; instead of `user` and `password`.", '"env:ALERTMANAGER_TOKEN"'),
        "user": ("The user.", "tocsin"),
        "password": ("The password of `user`.", '"env:ALERTMANAGER_PASSWORD"'),
        "resolve_timeout": ("How long an alert holds that is not sent again, 1m or more.", "5m"),
    },
    "EmailEntry": {
        "to": ("The recipient, or a list of recipients.", "[oncall@kafka.example]"),
        "from": ("The sender.", "tocsin@kafka.example"),
        "smtp": ("The mail server; the port is that of `tls` if not given.", '"mail.example:587"'),
        "tls": ("The encryption: starttls (port 587), tls (465) or none (25).", "tls"),
        "user": ("The user of the mail server. If not given: no login.", "tocsin"),
        "password": ("The password of `user`.", '"env:SMTP_PASSWORD"'),
    },
    "TeamsEntry": {
        "webhook_url": ("The address of the workflow, which is a secret.", '"env:TEAMS_URL"'),
    },
    "TerminalEntry": {},
    "SlackEntry": {
        "channel": ("The channel, by name or id; with `token`.", '"#kafka-ops"'),
        "token": ("The token of the bot.", '"env:SLACK_BOT_TOKEN"'),
        "app_token": ("The token of the app (xapp-...), for buttons and commands by Socket Mode.", '"env:SLACK_APP_TOKEN"'),
        "webhook_url": ("An incoming webhook, instead of `channel` and `token`.", '"file:secrets/slack-webhook"'),
        "base_url": ("The address of Slack's API.", '"https://slack.com/api/"'),
    },
    "WebhookEntry": {
        "url": ("The address; env:NAME or file:PATH when it holds a password.", '"https://pager.example/in"'),
        "token": ("Sent as Authorization: Bearer.", '"env:PAGER_TOKEN"'),
    },
    "ElasticsearchReceiverEntry": {
        **_CONNECTION,
        "index": ("The index of incidents.", "tocsin-incidents"),
        "changes": ("The index of their changes. If not given: none.", "tocsin-incident-changes"),
        "retention": ("How long the documents of ended incidents are kept; 0s: for ever.", "30d"),
    },
    "StoreEntry": {
        "url": (
            "sqlite:///path, or postgresql+psycopg://user@host:5432/database, without a password.",
            "postgresql+psycopg://tocsin@db:5432/tocsin",
        ),
        "password": ("The password of the database.", '"env:TOCSIN_DB_PASSWORD"'),
    },
    "MetricsSection": {
        "listen": ("Where metrics and health are served.", '"127.0.0.1:9464"'),
    },
    "HeartbeatSection": {
        "url": ("The address that is called; env:NAME or file:PATH when it is secret.", '"env:HEARTBEAT_URL"'),
        "every": ("The time between calls.", "1m"),
    },
    "RedactEntry": {
        "email": ("Whether addresses of mail are masked.", "false"),
        "phone": ("Whether telephone numbers are masked.", "true"),
        "patterns": ("RE2 expressions whose text, or that of their group, is masked.", '["EMP-[0-9]{6}"]'),
    },
    "SparkEntry": {
        "master": (
            "The master of a Spark cluster (docs/cluster.md). If not given: threads of this machine.",
            "spark://spark-master:7077",
        ),
        "conf": (
            "Settings of Spark, as its documentation spells them; secrets as env:NAME or file:PATH.",
            "{spark.executor.memory: 2g}",
        ),
        "cores": ("Threads of the job; on a cluster, executors of one core.", "4"),
        "partitions": (
            "Partitions of the state, fixed for the life of a checkpoint. If not given: 1, and on a cluster `cores`.",
            "2",
        ),
        "parallelism": ("Tasks that read input. If not given: 1, and on a cluster `cores`.", "4"),
        "heap": ("Memory of the JVM of the driver.", "2g"),
        "trigger": ("The pause between batches.", "500ms"),
        "batch_lines": ("Lines of a batch, at most, from each source.", "100000"),
        "batch_bytes": (
            "Bytes of a batch, about, from each source: by the size that its lines had lately. 0: no bound.",
            "67108864",
        ),
        "audit": ("Whether some of the input is read by the reference too, and differences are reported.", "true"),
        "checkpoint": (
            "Where offsets and state are: a folder, or an hdfs: or s3a: URL (docs/cluster.md). If not given: beside the store.",
            "/var/lib/tocsin/checkpoint",
        ),
    },
    "WebEntry": {
        "listen": ("Where the pages are served, on this machine; where it is set, by `tocsin run` too.", '"127.0.0.1:9000"'),
        "public_url": (
            "Their address for people, before which a proxy stands; messages link to it.",
            '"https://tocsin.example"',
        ),
        "language": (
            "Their language: en or ko. If not given: that of the reader's browser, if a receiver has it.",
            "ko",
        ),
        "auth": (
            "Who may see the pages and act (docs/pages.md). If not given: everybody on this machine.",
            "{users: users.txt}",
        ),
    },
    "AuthEntry": {
        "users": ("The file of users and passwords, which `tocsin web passwd` writes; instead of `proxy`.", "users.txt"),
        "proxy": ("A proxy that people sign in to.", "{header: X-Forwarded-User, addresses: [10.0.0.5]}"),
        "session": ("How long a session lasts.", "8h"),
        "secret": ("What sessions are signed with. If not given: a file beside the store.", '"env:TOCSIN_SESSION_SECRET"'),
        "audit": ("The file of what people did. If not given: beside the store.", "audit.jsonl"),
    },
    "ProxyEntry": {
        "header": ("The header in which it names them.", "X-Forwarded-User"),
        "addresses": ("Its addresses, or networks.", "[10.0.0.5, 10.1.0.0/16]"),
    },
    "KibanaEntry": {
        "url": ("The address of Kibana.", '"https://kibana.example"'),
        "data_view": ("The id of a saved data view.", "logs"),
        "indices": ("The indices that hold the logs. If not given: those that sources read.", '["logs-*"]'),
        "version": ("The version of Kibana, in quotes.", '"9.2"'),
        "style": ("The form of links.", "auto"),
        "space": ("The space. If not given: the default one.", "ops"),
        "tenant": ("The tenant of OpenSearch Dashboards.", "global"),
        "saved_search": ("The id of a saved search that the links open.", "kafka-errors"),
        "time_field": ("The field of the time.", '"@timestamp"'),
        "columns": ("The columns that are shown.", "[message, log.level]"),
        "fields": ("The field of a label, by label.", "{broker: kafka.broker.id}"),
    },
}
