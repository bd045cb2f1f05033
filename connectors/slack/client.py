"""Slack's client with requests sent by engine/exchange, and with every answer checked to be Slack's."""

from __future__ import annotations

import logging
from typing import Any
from urllib.request import Request

from slack_sdk import WebClient

from connectors.slack.answers import check_answer
from engine.exchange import exchange

_SILENT = logging.Logger("slack_sdk")  # errors are in the receipt; the client would print whole answers to stderr
_SILENT.addHandler(logging.NullHandler())


class StrictClient(WebClient):
    """The SDK's client without its own transport, which follows redirects with the token and reads answers without limits of
    size and time.

    Calls raise NotSlack in addition to the SDK's errors.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, logger=_SILENT)

    def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
        answer = exchange(req)
        check_answer(answer)
        return {"status": answer.status, "headers": dict(answer.headers), "body": answer.text}
