"""Slack's client, whose requests go out by engine/exchange and whose answers are Slack's own or none."""

from __future__ import annotations

import logging
from typing import Any
from urllib.request import Request

from slack_sdk import WebClient

from connectors.slack.answers import checked
from engine.exchange import exchange

_SILENT = logging.Logger("slack_sdk")  # what went wrong is in the receipt; the client would print whole answers to stderr
_SILENT.addHandler(logging.NullHandler())


class StrictClient(WebClient):
    """The client of the SDK, which itself follows redirects with the token and reads answers of any size for any time.

    Its calls raise NotSlack besides what they raise anyway.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, logger=_SILENT)

    def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
        answer = exchange(req)
        checked(answer)
        return {"status": answer.status, "headers": dict(answer.headers), "body": answer.text}
