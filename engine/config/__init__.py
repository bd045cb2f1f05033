"""tocsin.yml: read, checked as a whole, and turned into settings. Every error comes at once, with its place in the file."""

from engine.config.receivers import ReceiverSettings, SlackSettings, TerminalSettings, WebhookSettings
from engine.config.settings import Checks, Settings, SourceSettings, load
from engine.config.web import WebSettings, listen_address
from engine.secrets import Secret

__all__ = [
    "Checks",
    "ReceiverSettings",
    "Secret",
    "Settings",
    "SlackSettings",
    "SourceSettings",
    "TerminalSettings",
    "WebSettings",
    "WebhookSettings",
    "listen_address",
    "load",
]
