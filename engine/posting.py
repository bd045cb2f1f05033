"""Post one HTTP request to a receiver, and turn its answer or failure into a receipt. Nothing is retried."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Collection, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from engine.exchange import HttpAnswer, exchange, reached
from engine.model.inspections import Inspection, fault
from engine.model.notifications import DeliveryState, Receipt

REFUSALS = frozenset((400, 410, 413, 415, 422))  # the server has rejected the document itself, or is gone for good


def json_request(url: str, document: Any, headers: Mapping[str, str] | None = None) -> Request:
    """Return the request that posts `document` as JSON to `url`, which must be an http or https address."""
    all_headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin", **(headers or {})}
    body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    return Request(url, body, all_headers, method="POST")  # noqa: S310 - the receiver checks the scheme when it is opened


def is_page(answer: HttpAnswer) -> bool:
    """Return whether an answer is a page for people, as of a proxy or a login, and not that of an API."""
    return answer.text.lstrip()[:1] == "<" or "html" in answer.headers.get("content-type", "")


def posted(
    request: Request,
    receiver: str,
    refusals: Collection[int] = REFUSALS,
    accepts: Callable[[HttpAnswer], bool] = lambda answer: True,
) -> Receipt:
    """Send `request` and return the receipt. 2xx that `accepts` is delivered, a status of `refusals` is rejected.

    Anything else is tried again later: it may come from a proxy, or somebody may correct the address or the token.

    Args:
        receiver: its name in sentences: "the webhook".
    """
    try:
        return _receipt(exchange(request), receiver, refusals, accepts)
    except (OSError, HTTPException, ValueError) as error:
        return failed(error, receiver)


def inspected(url: str, receiver: str) -> Inspection:
    """Return whether the server of `url` answers; nothing is posted.

    Args:
        receiver: its name in sentences: "the webhook".
    """
    try:
        answer = reached(url)
    except (OSError, HTTPException, ValueError) as error:
        return fault(failed(error, receiver).why)
    if answer.is_redirect:
        return fault(f"{receiver} answers with a redirect to {answer.redirection()}, which is not followed; check url")
    return Inspection("the server answers; nothing was posted")


def failed(error: Exception, receiver: str) -> Receipt:
    """Return the receipt of a failed connection: unsure, unless nothing can have been sent."""
    cause = error.reason if isinstance(error, URLError) else error
    nothing_sent = isinstance(cause, ConnectionRefusedError | socket.gaierror)
    how = "does not answer in time" if isinstance(cause, TimeoutError) else f"cannot be reached ({type(cause).__name__})"
    return Receipt(DeliveryState.RETRY_LATER, f"{receiver} {how}", unsure=not nothing_sent)


def _receipt(answer: HttpAnswer, receiver: str, refusals: Collection[int], accepts: Callable[[HttpAnswer], bool]) -> Receipt:
    is_success = 200 <= answer.status < 300
    if is_success and accepts(answer):
        return Receipt(DeliveryState.DELIVERED)
    if answer.is_redirect:
        redirect = f"a redirect to {answer.redirection()} (status {answer.status}), which is not followed; check url"
        return Receipt(DeliveryState.RETRY_LATER, f"{receiver} answers with {redirect}")
    quoted = answer.quoted()
    why = f"{receiver} answers with status {answer.status}{f': {quoted}' if quoted else ''}"
    if is_success:
        return Receipt(DeliveryState.RETRY_LATER, f"{why}; that is not its own answer, check the proxy", unsure=True)
    if answer.status in refusals:
        return Receipt(DeliveryState.REJECTED, why)
    after = answer.headers.get("retry-after", "")
    after_s = float(after) if re.fullmatch(r"[0-9]{1,9}", after) else None
    return Receipt(DeliveryState.RETRY_LATER, why, after_s=after_s, unsure=answer.status >= 500)
