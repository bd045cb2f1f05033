"""Slack as a receiver: one message for each incident, kept up to date by edits, with details and changes in its thread.

With a bot token (SlackReceiver) messages can be searched and edited; with an incoming webhook (SlackWebhookReceiver) they can
only be posted. A SlackSocket takes what people do there: buttons, forms and the command /tocsin.
"""

from connectors.slack.limits import breaches
from connectors.slack.message import Message, change, parent
from connectors.slack.receiver import SlackReceiver, open_receiver
from connectors.slack.socket import SlackSocket, open_socket
from connectors.slack.thread import details
from connectors.slack.webhook import SlackWebhookReceiver, open_webhook_receiver

__all__ = [
    "Message",
    "SlackReceiver",
    "SlackSocket",
    "SlackWebhookReceiver",
    "breaches",
    "change",
    "details",
    "open_receiver",
    "open_socket",
    "open_webhook_receiver",
    "parent",
]
