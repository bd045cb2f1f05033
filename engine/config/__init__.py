"""Read tocsin.yml, check it as a whole and turn it into settings. All errors are reported at once, with places in the file."""

from engine.config.advice import advise
from engine.config.monitoring import HeartbeatSettings, MetricsSettings
from engine.config.protocols import AlertmanagerSettings, EmailSettings, PagerDutySettings, TeamsSettings
from engine.config.receivers import (
    ElasticsearchSettings,
    ReceiverSettings,
    SlackSettings,
    TerminalSettings,
    WebhookSettings,
    keeps_record,
)
from engine.config.settings import Checks, Examination, Settings, SourceSettings, examine, load
from engine.config.web import AuthSettings, WebSettings, listen_address
from engine.secrets import Secret

__all__ = [
    "AlertmanagerSettings",
    "AuthSettings",
    "Checks",
    "ElasticsearchSettings",
    "EmailSettings",
    "Examination",
    "HeartbeatSettings",
    "MetricsSettings",
    "PagerDutySettings",
    "ReceiverSettings",
    "Secret",
    "Settings",
    "SlackSettings",
    "SourceSettings",
    "TeamsSettings",
    "TerminalSettings",
    "WebSettings",
    "WebhookSettings",
    "advise",
    "examine",
    "keeps_record",
    "listen_address",
    "load",
]
