"""How a cluster is asked, whatever its version, and what its failures are called."""

from __future__ import annotations

import base64
import socket
from pathlib import Path

import certifi
import pytest
from elastic_transport import TlsError

from connectors.elasticsearch.connection import (
    ElasticsearchConnection,
    explained,
    is_passing,
    open_client,
    source_error,
)
from engine.errors import SourceAway, SourceDenied, SourceError, UsageError
from tests.unit.connectors.answering import Answer, Asked, answering

OPENSEARCH = {"version": {"number": "2.19.1", "distribution": "opensearch"}, "tagline": "The OpenSearch Project"}


def connection(url: str, **fields: object) -> ElasticsearchConnection:
    return ElasticsearchConnection((url,), **fields)  # type: ignore[arg-type]


def only_plain(request: Asked) -> Answer:
    """Answer as OpenSearch and older majors do: another media type than JSON is refused."""
    if "vnd.elasticsearch" in request.headers.get("accept", "") + request.headers.get("content-type", ""):
        return Answer({"error": {"type": "media_type_header_exception", "reason": "Invalid media-type"}}, 400)
    return Answer(OPENSEARCH, headers={"Warning": '299 OpenSearch-2.19.1 "security is off"'})


def test_opensearch_and_older_majors_are_asked_in_plain_json() -> None:
    with answering(only_plain) as server:
        client = open_client(connection(server.url))
        assert client.info()["version"]["distribution"] == "opensearch"
        client.bulk(operations=[{"index": {"_index": "a"}}, {"x": 1}])
        client.close()
    assert server.asked[1].headers["content-type"] == "application/x-ndjson"


def test_secrets_are_read_from_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ES_KEY", "id7:key7")
    (tmp_path / "password").write_text("pass7\n")
    with answering(only_plain) as server:
        for fields in ({"api_key": "env:ES_KEY"}, {"user": "anna", "password": f"file:{tmp_path}/password"}):
            client = open_client(connection(server.url, **fields))
            client.info()
            client.close()
    sent = [request.headers["authorization"] for request in server.asked]
    kinds = [(kind, base64.b64decode(what).decode()) for kind, _, what in (value.partition(" ") for value in sent)]
    assert kinds == [("ApiKey", "id7:key7"), ("Basic", "anna:pass7")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"api_key": "env:ES_NO_SUCH_KEY"}, "env:ES_NO_SUCH_KEY: the environment variable ES_NO_SUCH_KEY is not set"),
        ({"api_key": "env:ES_KEY", "urls": ("http://es.example:9200",)}, "es.example:9200 is reached by http"),
        ({"urls": ("https://u:p@es.example",)}, "must be an http address without a password"),
        ({"ca": "env:ES_KEY"}, "ca of elasticsearch: env:ES_KEY holds no certificate in PEM"),
    ],
)
def test_what_cannot_be_used_is_said_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, object], why: str
) -> None:
    monkeypatch.setenv("ES_KEY", "ZQ7xSecret")
    with pytest.raises(UsageError, match=why) as raised:
        open_client(ElasticsearchConnection(**{"urls": ("https://es.example",), **fields}))  # type: ignore[arg-type]
    assert "ZQ7x" not in str(raised.value) and "u:p" not in str(raised.value)


def test_a_file_of_certificates_may_hold_words_between_them(tmp_path: Path) -> None:
    start, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    one = certifi.contents().partition(start)[2].partition(end)[0]
    (tmp_path / "ca.pem").write_text(
        f"# Zertifizierungsstelle für alle\n{start}{one}{end}\nBag Attributes: é\n", encoding="utf-8"
    )
    open_client(connection("https://es.example:9200", ca=f"file:{tmp_path / 'ca.pem'}")).close()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("self-signed certificate (_ssl.c:1006)", "not signed by a trusted authority; name the authority's with ca: file:PATH"),
        ("unable to get local issuer certificate (_ssl.c:1006)", "not signed by a trusted authority"),
        ("IP address mismatch, certificate is not valid for '127.0.0.1'. (_ssl.c:1006)", "is for another name; write in url"),
        ("Hostname mismatch, certificate is not valid for 'es'. (_ssl.c:1006)", "is for another name; write in url"),
        ("certificate has expired (_ssl.c:1006)", "has expired, or is not valid yet; renew it"),
        ("certificate is not yet valid (_ssl.c:1006)", "has expired, or is not valid yet; renew it"),
    ],
)
def test_a_certificate_that_is_not_trusted_says_what_to_do(words: str, sentence: str) -> None:
    """The words are those of OpenSSL."""
    error = TlsError(f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {words}")
    assert sentence in explained(error, "es:9200")


def test_http_is_taken_where_the_configuration_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_KEY", "x")
    open_client(connection("http://es.example:9200", api_key="env:ES_KEY", unprotected=True)).close()


def failing(status: int, body: object, url: str = "") -> tuple[Exception, str]:
    """Return the error of a call that is answered so, and what the server's place is called."""
    with answering(lambda _: Answer(body, status)) as server:
        asked = connection(url or server.url)
        client = open_client(asked)
        with pytest.raises(Exception) as raised:
            client.info()
        client.close()
    return raised.value, asked.place


@pytest.mark.parametrize(
    ("status", "body", "sentence", "passing", "kind"),
    [
        (
            401,
            {"error": {"reason": "missing credentials"}},
            "status 401): missing credentials; check api_key",
            False,
            SourceDenied,
        ),
        (
            403,
            {"error": {"root_cause": [{"reason": "action [x] unauthorized"}]}},
            "action [x] unauthorized; give the key",
            False,
            SourceDenied,
        ),
        (
            403,
            {"error": {"type": "cluster_block_exception", "reason": "index [a] blocked by: [FORBIDDEN/8/index write (api)]"}},
            "index write (api)]; a block of the index forbids it to everybody",
            False,
            SourceDenied,
        ),
        (
            404,
            {"error": {"type": "index_not_found_exception"}},
            "answers with status 404: index_not_found_exception",
            False,
            SourceError,
        ),
        (
            429,
            {"error": {"reason": "rejected execution"}},
            "is overloaded (status 429): rejected execution",
            True,
            SourceAway,
        ),
        (
            503,
            "<html>\n<b>upstream is\x1b[31m down</b>",
            "answers with status 503: <html> <b>upstream is\\x1b[31m down</b>",
            True,
            SourceAway,
        ),
        (200, "<html>log in</html>", "", False, SourceError),
    ],
)
def test_failures_are_said_with_what_to_do(
    status: int, body: object, sentence: str, passing: bool, kind: type[SourceError]
) -> None:
    if status == 200:  # a page of a proxy is an answer of text: whoever wants a map sees that it is none
        with answering(lambda _: Answer(body)) as server:
            client = open_client(connection(server.url))
            assert client.info().body == body
            client.close()
        return
    error, place = failing(status, body)
    assert sentence in explained(error, place)
    assert is_passing(error) is passing
    assert type(source_error(error, place)) is kind


def test_a_broken_network_passes() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error, place = failing(200, {}, f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert explained(error, place) == f"Elasticsearch at {place} cannot be reached (ConnectionRefusedError)"
    assert isinstance(source_error(error, place), SourceAway)


def test_a_server_without_tls_is_not_asked_for_ever() -> None:
    with answering(only_plain) as server:
        error, place = failing(200, {}, server.url.replace("http:", "https:"))
    assert "it does not speak TLS; write http:// in url if that is right" in explained(error, place)
    assert not is_passing(error)
