"""The connection to a cluster of Elasticsearch (7.17 to 9) or OpenSearch (2, 3), and the explanation of its failures.

The client of one major version marks its requests with a media type of that version. Servers of an older major version and
OpenSearch reject it, so requests have the media type of plain JSON here, which all of them accept; and an answer of OpenSearch
lacks the header by which the client recognises Elasticsearch. Both are corrected in the node, the client's extension point for
another HTTP library.
"""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

from elastic_transport import (
    ApiResponseMeta,
    ConnectionError,
    ConnectionTimeout,
    HttpHeaders,
    SerializationError,
    TlsError,
    TransportError,
    Urllib3HttpNode,
)
from elasticsearch import ApiError, Elasticsearch
from msgspec import Struct

from engine.errors import SourceAway, SourceDenied, SourceError, UsageError
from engine.model.addresses import is_web_address, may_carry_secrets
from engine.model.visible import visible
from engine.secrets import parse_secret

__all__ = ["ApiError", "ElasticsearchConnection", "TransportError", "explained", "is_passing", "open_client", "source_error"]

ANSWER_S = 30.0
MOST_QUOTED = 200  # characters of an answer in a sentence
NO_CERTIFICATE = "none"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----")
_PASSING = frozenset((408, 429, 500, 502, 503, 504))
_PORTS = {"http": 80, "https": 443}


class ElasticsearchConnection(Struct, frozen=True):
    """The addresses of a cluster and the credentials. `api_key`, `password` and `ca` are references (`env:NAME`, `file:PATH`).
    `ca`: certificates in PEM that verify the server's; empty: the system's. `unprotected`: http may carry secrets."""

    urls: tuple[str, ...]
    api_key: str = ""
    user: str = ""
    password: str = ""
    ca: str = ""
    unprotected: bool = False

    @property
    def place(self) -> str:
        """The hosts, safe to show: `es1.example:9200`."""
        return ", ".join(_host(url) for url in self.urls)


class _PlainJsonNode(Urllib3HttpNode):
    """Sends plain JSON instead of the media type of one major version, and marks answers of OpenSearch as Elasticsearch's."""

    def perform_request(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: HttpHeaders | None = None,
        request_timeout: Any = ANSWER_S,
    ) -> Any:
        plain = HttpHeaders({name: _plain(value) for name, value in (headers or {}).items()})
        response = super().perform_request(method, target, body, plain, request_timeout)
        answered = {name: value for name, value in response.meta.headers.items() if name.lower() != "warning"}
        meta, headers_of_elasticsearch = response.meta, HttpHeaders({**answered, "x-elastic-product": "Elasticsearch"})
        return response._replace(
            meta=ApiResponseMeta(meta.status, meta.http_version, headers_of_elasticsearch, meta.duration, meta.node)
        )


def open_client(connection: ElasticsearchConnection, answer_s: float = ANSWER_S, **options: Any) -> Elasticsearch:
    """Return a client of the cluster, without a request yet. It does not retry unless its `options` say so.

    Raises UsageError when a secret is missing, when one would be sent unprotected, or when `ca` has no certificate.
    """
    has_secret = bool(connection.api_key or connection.password)
    for url in connection.urls:
        if not is_web_address(url) or "@" in url:
            raise UsageError(
                "url of elasticsearch: must be an http address without a password, such as https://es.example:9200"
            )
        if has_secret and not connection.unprotected and not may_carry_secrets(url):
            raise UsageError(
                f"url of elasticsearch: {_host(url)} is reached by http, which anybody on the way can read; use https, or write"
                " unprotected: true if the network between is your own"
            )
    settings: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False, "request_timeout": answer_s, **options}
    if connection.api_key:
        settings["api_key"] = _encoded(parse_secret(connection.api_key).reveal())
    elif connection.user:
        settings["basic_auth"] = (connection.user, parse_secret(connection.password).reveal() if connection.password else "")
    if connection.ca:
        settings["ssl_context"] = _trusting(connection.ca)
    return Elasticsearch([_with_port(url) for url in connection.urls], node_class=_PlainJsonNode, **settings)


def explained(error: Exception, place: str) -> str:
    """Return a sentence about a failed call to the cluster at `place`: the failure, and what to do if that is known. It is one
    line, has no secret, and is safe to show."""
    if isinstance(error, ApiError):
        return f"Elasticsearch at {place} {_refusal(error)}"
    if isinstance(error, TlsError):
        return f"Elasticsearch at {place} cannot be trusted: {_tls(error)}"
    if isinstance(error, ConnectionTimeout):
        return f"Elasticsearch at {place} does not answer in time"
    if isinstance(error, ConnectionError):
        return f"Elasticsearch at {place} cannot be reached ({_innermost(error)})"
    if isinstance(error, SerializationError):
        return f"what answers at {place} is not Elasticsearch: no JSON comes back; check url, and the proxy"
    return f"Elasticsearch at {place} cannot be asked ({type(error).__name__})"


def is_passing(error: Exception) -> bool:
    """Return whether a failure may pass by itself: an overload, a restart, a broken network."""
    if isinstance(error, ApiError):
        return error.status_code in _PASSING
    return isinstance(error, ConnectionError | ConnectionTimeout) and not isinstance(error, TlsError)


def source_error(error: Exception, place: str) -> SourceError:
    """Return the error of a source for a failed call: SourceAway if it may pass, SourceDenied if it is not allowed, else
    SourceError."""
    sentence = explained(error, place)
    if is_passing(error):
        return SourceAway(place, sentence)
    if isinstance(error, ApiError) and error.status_code in (401, 403):
        return SourceDenied(sentence)
    return SourceError(sentence)


def _plain(header: str) -> str:
    """Return `application/vnd.elasticsearch+json; compatible-with=8` as `application/json`; other values as they are."""
    return ",".join(
        part.replace("vnd.elasticsearch+", "").partition(";")[0].strip() if "vnd.elasticsearch+" in part else part
        for part in header.split(",")
    )


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, '')}"


def _with_port(url: str) -> str:
    """Return `url` with its port, which the client requires."""
    parts = urlsplit(url)
    return url if parts.port else parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORTS[parts.scheme]}").geturl()


def _encoded(api_key: str) -> str:
    """Return an API key in its encoded form; `id:key` is the form before."""
    return b64encode(api_key.encode()).decode() if ":" in api_key else api_key


def _trusting(reference: str) -> ssl.SSLContext:
    certificates = "\n".join(_CERTIFICATE.findall(parse_secret(reference).reveal()))  # without any other text between them
    try:
        return ssl.create_default_context(cadata=certificates or NO_CERTIFICATE)
    except (ssl.SSLError, ValueError):
        raise UsageError(f"ca of elasticsearch: {reference} holds no certificate in PEM") from None


def _refusal(error: ApiError) -> str:
    status, reason = error.status_code, _reason(error)
    detail = f": {reason}" if reason else ""
    if status == 401:
        return f"does not accept the credentials (status 401){detail}; check api_key, or user and password"
    if status == 403 and _kind(error) == "cluster_block_exception":
        return f"does not allow it (status 403){detail}; a block of the index forbids it to everybody, see its index.blocks"
    if status == 403:
        return f"does not allow it (status 403){detail}; give the key or the user the privilege"
    if status == 429:
        return f"is overloaded (status 429){detail}"
    return f"answers with status {status}{detail}"


def _kind(error: ApiError) -> str:
    cause = error.body.get("error") if isinstance(error.body, dict) else None
    return str(cause.get("type", "")) if isinstance(cause, dict) else ""


def _reason(error: ApiError) -> str:
    """Return the server's reason for a refused call; the beginning of the answer when it is not an error of the server."""
    body = error.body
    cause = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(cause, dict):
        causes = cause.get("root_cause")
        first = causes[0] if isinstance(causes, list) and causes and isinstance(causes[0], dict) else cause
        cause = first.get("reason") or first.get("type") or cause.get("reason") or ""
    words = " ".join(str(cause or "").split())
    return visible(words if len(words) <= MOST_QUOTED else f"{words[: MOST_QUOTED - 1]}…")


def _tls(error: TlsError) -> str:
    words = error.message
    if "not valid for" in words:
        return "its certificate is for another name; write in url a name that it is for"
    if "expired" in words or "not yet valid" in words:
        return "its certificate has expired, or is not valid yet; renew it, or set the clock right"
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return "its certificate is not signed by a trusted authority; name the authority's with ca: file:PATH"
    if "WRONG_VERSION_NUMBER" in words or "record layer" in words:
        return "it does not speak TLS; write http:// in url if that is right"
    return f"the TLS handshake fails ({visible(words[:MOST_QUOTED])})"


def _innermost(error: ConnectionError) -> str:
    """Return the name of the innermost cause: `ConnectionRefusedError`."""
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    return type(cause).__name__
