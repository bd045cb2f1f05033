"""Finds the values of XML elements and of command-line options that have the name of a secret."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch, names
from engine.match.masking.values import QUOTE, WINDOW, NumberedLines, closing_quote, opening_quote, token_end

_ELEMENT = expression(
    rf"(?:<|&lt;|\\+u003c)(?:[\w\-]+:)?(?:({names.NAME})(?:\s[^<>\n]*)?|[\w.\-]+\s[^<>\n]*?(?:key|name|id)\s*=\s*\\*[\"']({names.NAME})"
    rf"\\*[\"'][^<>\n]*)(?:>|&gt;|\\+u003e)\s*",
    nocase=True,
)
_ELEMENT_END = expression(r"</|&lt;/|\\+u003c/", nocase=True)
_CDATA_END = expression(r"]]>")
_CDATA = b"<![CDATA["
_OPTION = expression(
    rf"(?:^|[\s\"'\[,(])--?({names.NAME}|storepass|keypass|[a-z]*storepass|[a-z]*keypass|passin|passout)(?:{QUOTE}?,)?\s+",
    nocase=True,
)
_PASS_SOURCE = expression(r"\bpass:([^\s\"']+)")  # openssl -passin pass:x
_USER = expression(rf"(?:^|\s)(?:-u|-U|--(?:proxy-)?user|--basic-auth|--auth)(?:\s+|=)?({QUOTE})?[^\s:\"'/=-][^\s:\"'/]*:")
# commands with an option for a password: right behind the option, or (below) after a blank
_JOINED = expression(
    rf"\b(?:mysql|mysqldump|mysqladmin|mysqlsh|mysqlimport|mariadb|mariadb-\w+|mongo\w*|sshpass|7za?|plink|zip|unzip|"
    rf"docker login|podman login)\b"
    rf"[^\n|]*?\s-[pP](?:[ \t]*=)?({QUOTE})?"
)
_APART = expression(
    rf"\b(?:(?:mongo\w*|sshpass|plink|docker login|podman login)\b[^\n|]*?\s-p|redis-cli\b[^\n|]*?\s(?:-a|--pass)|"
    rf"ldap(?:search|modify|add|delete|whoami|passwd)\b[^\n|]*?\s-w|sqlcmd\b[^\n|]*?\s-P|bcp\b[^\n|]*?\s-P|kinit\b[^\n|]*?\s--password|"
    rf"zip\b[^\n|]*?\s-P|htpasswd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+)[ \t]+({QUOTE})?"
)
_PIPED = expression(r"\b(?:echo|printf)[ \t]+(?:-\w+[ \t]+)?([^\n|]*?)[ \t]*\|[^\n|]*--password-stdin\b")
_PERCENT = expression(r"\b(?:smbclient|rpcclient|net)\b[^\n|]*?\s-U[ \t]*[^\s%]+%(\S+)")
_IDENTIFIED = expression(rf"\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?({QUOTE})", nocase=True)


def elements(data: bytes) -> Iterator[Stretch]:
    """Yield the contents of elements that have the name of a secret, or an attribute `key`, `name` or `id` with one."""
    at, lines, endings = 0, NumberedLines(data), {_CDATA_END: True, _ELEMENT_END: True}
    while (hit := _ELEMENT.search(data, at)) is not None:
        at = hit.end()
        if names.kind_of((hit.group(1) or hit.group(2)).strip(b".-_")) is None:
            continue
        quoted = data.startswith(_CDATA, at)
        begin, ending = (at + len(_CDATA), _CDATA_END) if quoted else (at, _ELEMENT_END)
        end = ending.search(data, begin) if endings[ending] else None
        endings[ending] = end is not None  # when no ending is left, it is not searched for again
        stop = lines.end(begin) if end is None else end.start()
        nested = not quoted and data.find(b"<", begin, stop) >= 0
        if end is None and not nested:  # cut off, or `<PASSWORD>` is a placeholder and a sentence follows
            stop = at if data[at - 1 : at].isspace() else token_end(data, begin, stop)
        if not nested and not names.is_nothing(data[begin:stop].strip()):
            yield begin, stop
            at = stop


def options(data: bytes) -> Iterator[Stretch]:
    """Yield the secrets in options of commands that have the name of a secret."""
    lines = NumberedLines(data)
    for hit in _OPTION.finditer(data):
        name = hit.group(1).strip(b".-_").lower()
        if names.kind_of(name) or name.endswith((b"storepass", b"keypass")):
            yield from _argument(data, hit.end(), lines, spoken=True)
    for hit in _PASS_SOURCE.finditer(data):
        yield hit.span(1)


def commands(data: bytes) -> Iterator[Stretch]:
    """Yield the secrets in short options, such as `-p`, which are recognised by their command."""
    lines = NumberedLines(data)
    for hit in _USER.finditer(data):
        begin, quote = hit.end(), hit.group(1) or b""
        stop = _stop(data, begin, quote, lines)
        if begin < stop and not (data[begin - 2 : begin - 1].isdigit() and data[begin:stop].isdigit()):  # `--user 1000:1000`
            yield begin, stop
    for shape in (_PIPED, _PERCENT):
        for hit in shape.finditer(data):
            if not names.is_nothing(hit.group(1)) and not hit.group(1).startswith(b"$"):
                yield hit.span(1)
    for shape in (_JOINED, _APART, _IDENTIFIED):
        lines = NumberedLines(data)
        for hit in shape.finditer(data):
            yield from _argument(data, hit.end(1) if hit.group(1) else hit.end(), lines, hit.group(1) or b"")


def _argument(data: bytes, at: int, lines: NumberedLines, quote: bytes = b"", spoken: bool = False) -> Iterator[Stretch]:
    """Yield the argument at `at`, unless it is another option.

    Args:
        spoken: the option may stand in a sentence; then a word of prose is no argument either.
    """
    if not quote:
        quote = opening_quote(data, at, lines.end(at))
        at += len(quote)
    stop = _stop(data, at, quote, lines)
    value = data[at : min(stop, at + WINDOW)]
    if names.is_nothing(value) or (not quote and value.startswith(b"-")) or (spoken and not quote and names.is_prose(value)):
        return
    yield at, stop


def _stop(data: bytes, at: int, quote: bytes, lines: NumberedLines) -> int:
    end = lines.end(at)
    return closing_quote(data, at, quote, end) if quote else token_end(data, at, end)
