"""The connection to a cluster of Elasticsearch (7.17 to 9) or OpenSearch (2, 3), and what its failures mean.

The client of one major version marks its requests with a media type of that version. Servers of an older major version and
OpenSearch refuse it, so requests bear plain JSON here, which all of them take; and an answer of OpenSearch lacks the header by
which the client knows Elasticsearch. Both are set right in the node, the client's own place for another HTTP library.
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
    """Where a cluster is and who asks it. `api_key`, `password` and `ca` are references (`env:NAME`, `file:PATH`); `ca` names
    certificates in PEM that the server's is checked by, the system's when empty. `unprotected`: http may carry secrets."""

    urls: tuple[str, ...]
    api_key: str = ""
    user: str = ""
    password: str = ""
    ca: str = ""
    unprotected: bool = False

    @property
    def place(self) -> str:
        """The hosts, as they may be shown: `es1.example:9200`."""
        return ", ".join(_host(url) for url in self.urls)


class _PlainJsonNode(Urllib3HttpNode):
    """Speaks plain JSON instead of the media type of one major version, and takes answers of OpenSearch for Elasticsearch's."""

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
    """Return a client of the cluster; nothing is asked of it yet. It never tries again by itself unless `options`, the client's
    own, say so.

    Raises UsageError when a secret is not where it should be, when one would travel unprotected, or when a certificate is none.
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
    """Return the sentence on a failure of a call to the cluster at `place`: what it is, and what to do where that is known. It
    holds no secret, is one line, and is safe to show."""
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
    """Say whether a failure may be over in a moment by itself: an overload, a restart, a broken network."""
    if isinstance(error, ApiError):
        return error.status_code in _PASSING
    return isinstance(error, ConnectionError | ConnectionTimeout) and not isinstance(error, TlsError)


def source_error(error: Exception, place: str) -> SourceError:
    """Return what a source raises for a failed call: SourceAway for what may pass, SourceDenied for what is not allowed."""
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
    """Return `url` with its port, which the client wants to see."""
    parts = urlsplit(url)
    return url if parts.port else parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORTS[parts.scheme]}").geturl()


def _encoded(api_key: str) -> str:
    """Return an API key as it is sent; `id:key` is what it is before it is encoded."""
    return b64encode(api_key.encode()).decode() if ":" in api_key else api_key


def _trusting(reference: str) -> ssl.SSLContext:
    certificates = "\n".join(_CERTIFICATE.findall(parse_secret(reference).reveal()))  # whatever else stands between them
    try:
        return ssl.create_default_context(cadata=certificates or NO_CERTIFICATE)
    except (ssl.SSLError, ValueError):
        raise UsageError(f"ca of elasticsearch: {reference} holds no certificate in PEM") from None


def _refusal(error: ApiError) -> str:
    status, reason = error.status_code, _reason(error)
    detail = f": {reason}" if reason else ""
    if status == 401:
        return f"does not know who asks (status 401){detail}; check api_key, or user and password"
    if status == 403 and _kind(error) == "cluster_block_exception":
        return f"does not allow it (status 403){detail}; a block of the index forbids it to everybody, see its index.blocks"
    if status == 403:
        return f"does not allow it (status 403){detail}; give the key or the user the privilege"
    if status == 429:
        return f"has too much to do (status 429){detail}"
    return f"answers with status {status}{detail}"


def _kind(error: ApiError) -> str:
    cause = error.body.get("error") if isinstance(error.body, dict) else None
    return str(cause.get("type", "")) if isinstance(cause, dict) else ""


def _reason(error: ApiError) -> str:
    """Return why a call was refused in the server's words; the beginning of what was answered when it is no JSON of its own."""
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
        return "its certificate is not signed by anybody known here; name the authority's with ca: file:PATH"
    if "WRONG_VERSION_NUMBER" in words or "record layer" in words:
        return "it does not speak TLS; write http:// in url if that is right"
    return f"the TLS handshake fails ({visible(words[:MOST_QUOTED])})"


def _innermost(error: ConnectionError) -> str:
    """Return the name of what broke the connection: `ConnectionRefusedError`."""
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    return type(cause).__name__
