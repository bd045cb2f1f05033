"""Values of XML elements and of command-line options that are named as secrets."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import names
from engine.match.masking.values import QUOTE, closing_quote, line_end, opening_quote, token_end

Stretch = tuple[int, int]

_ELEMENT = expression(
    rf"(?:<|&lt;|\\+u003c)(?:[\w\-]+:)?(?:({names.NAME})(?:\s[^<>\n]*)?|[\w.\-]+\s[^<>\n]*?(?:key|name|id)\s*=\s*\\*[\"']({names.NAME})"
    rf"\\*[\"'][^<>\n]*)(?:>|&gt;|\\+u003e)\s*",
    nocase=True,
)
_ELEMENT_END = expression(r"</|&lt;/|\\+u003c/|]]>", nocase=True)
_CDATA = b"<![CDATA["
_OPTION = expression(rf"(?:^|[\s\"'\[,(])--?({names.NAME}|storepass|keypass|[a-z]*storepass|[a-z]*keypass|passin|passout)(?:{QUOTE}?,)?\s+", nocase=True)
_PASS_SOURCE = expression(r"\bpass:([^\s\"']+)")  # openssl -passin pass:x
_USER = expression(rf"(?:^|\s)(?:-u|-U|--(?:proxy-)?user|--basic-auth|--auth)(?:\s+|=)?({QUOTE})?[^\s:\"'/=-][^\s:\"'/]*:")
_GROUP_ID = expression(r"[0-9]+:[0-9]+")
# commands of which an option holds a password, written next to it or behind a blank
_JOINED = expression(
    rf"\b(?:mysql|mysqldump|mysqladmin|mysqlsh|mysqlimport|mariadb|mariadb-\w+|mongo\w*|sshpass|7za?|plink|zip|unzip|docker login|podman login)\b"
    rf"[^\n|]*?\s-[pP](?:[ \t]*=)?({QUOTE})?"
)
_APART = expression(
    rf"\b(?:(?:mongo\w*|sshpass|plink|docker login|podman login)\b[^\n|]*?\s-p|redis-cli\b[^\n|]*?\s(?:-a|--pass)|"
    rf"ldap(?:search|modify|add|delete|whoami|passwd)\b[^\n|]*?\s-w|sqlcmd\b[^\n|]*?\s-P|bcp\b[^\n|]*?\s-P|kinit\b[^\n|]*?\s--password|"
    rf"zip\b[^\n|]*?\s-P)[ \t]+({QUOTE})?"
)
_IDENTIFIED = expression(rf"\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?({QUOTE})", nocase=True)


def elements(data: bytes) -> Iterator[Stretch]:
    """Yield the contents of elements that are named as secrets, or whose key or name attribute is."""
    at = 0
    while (hit := _ELEMENT.search(data, at)) is not None:
        at = hit.end()
        name = (hit.group(1) or hit.group(2)).strip(b".-_")
        if names.kind_of(name, False) is None:
            continue
        begin = at + (len(_CDATA) if data.startswith(_CDATA, at) else 0)
        end = _ELEMENT_END.search(data, begin)
        stop = line_end(data, begin) if end is None else end.start()
        value = data[begin:stop].strip()
        if not names.is_nothing(value) and b"<" not in value:
            yield begin, stop
            at = stop


def options(data: bytes) -> Iterator[Stretch]:
    """Yield the secrets that are handed to commands as options."""
    for hit in _OPTION.finditer(data):
        name = hit.group(1).strip(b".-_").lower()
        if names.kind_of(name, False) or name.endswith((b"storepass", b"keypass")):
            yield from _argument(data, hit.end(), spoken=True)
    for hit in _PASS_SOURCE.finditer(data):
        yield hit.span(1)
    for hit in _USER.finditer(data):
        begin, quote = hit.end(), hit.group(1) or b""
        stop = _stop(data, begin, quote)
        if begin < stop and not _GROUP_ID.fullmatch(data, data.rfind(b" ", 0, begin) + 1, stop):
            yield begin, stop
    for shape in (_JOINED, _APART, _IDENTIFIED):
        for hit in shape.finditer(data):
            yield from _argument(data, hit.end(1) if hit.group(1) else hit.end(), hit.group(1) or b"")


def _argument(data: bytes, at: int, quote: bytes = b"", spoken: bool = False) -> Iterator[Stretch]:
    """Yield the argument at `at`, unless it is another option or, where a sentence may speak of the option, a word of it."""
    if not quote:
        quote = opening_quote(data, at, line_end(data, at))
        at += len(quote)
    stop = _stop(data, at, quote)
    value = data[at:stop]
    if names.is_nothing(value) or (not quote and value.startswith(b"-")) or (spoken and not quote and names.is_prose(value)):
        return
    yield at, stop


def _stop(data: bytes, at: int, quote: bytes) -> int:
    end = line_end(data, at)
    return closing_quote(data, at, quote, end) if quote else token_end(data, at, end)
