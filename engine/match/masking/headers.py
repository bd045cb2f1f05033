"""Finds credentials of protocols: in HTTP headers and cookies, SCRAM messages, JAAS modules."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch, names
from engine.match.masking.values import BEGINNING, QUOTE, NumberedLines, closing_quote, opening_quote, token_end

_AUTHORIZATION = expression(
    rf"({QUOTE})?\b(?:proxy-|x-)?authorization(?:{QUOTE})*\s*(?:=>|[=:])[ \t]*\[?[ \t]*({QUOTE})?[ \t]*"
    r"(basic|bearer|token|negotiate|ntlm|apikey|api-key|key|digest|aws[\w-]*|hawk|oauth|signature|sharedkey\w*|"
    r"hmac[\w-]*)?[ \t]*",
    nocase=True,
)
_LISTS = (b"digest", b"aws", b"hawk", b"oauth", b"signature", b"hmac")  # schemes with several parameters
_SCHEME = expression(r"\b(?:bearer|basic|negotiate|ntlm)[ \t]+([a-z0-9._~+/=\-]{8,})", nocase=True)
_DIGEST = expression(r"\bdigest[ \t]+(?:username|realm|nonce|uri|response|algorithm|qop)[ \t]*=[^\n]*", nocase=True)
_MIXED_CASE = expression(r"[a-z][A-Z]|[A-Z][a-z]+[A-Z]|=$|[0-9]")
_COOKIE = expression(rf"({QUOTE})?\b(?:set-)?cookies?2?({QUOTE})?\s*(?:=>|[=:])[ \t]*\[?[ \t]*({QUOTE})?", nocase=True)
_CRUMB = expression(r"[\w.\-]+=[^\s;]")
_SCRAM = expression(
    r"\bs=([A-Za-z0-9+/]{6,}={0,2}),i=[0-9]+|\bc=[A-Za-z0-9+/]+=*,r=[^,\s]+,p=([A-Za-z0-9+/]+={0,2})|\bv=([A-Za-z0-9+/]{20,}={0,2})"
)
_JAAS = expression(r"\b\w*Login(?:Module)?\s+(?:required|requisite|sufficient|optional)\b[ \t]*")
_JAAS_SETTING = expression(rf"\bsasl[._]jaas[._]config[\w.\-]*(?:{QUOTE})*\s*[=:][ \t]*({QUOTE})?", nocase=True)
_MODULE = expression(r"[\w.$]+\s+(?:required|requisite|sufficient|optional)\b[ \t]*", nocase=True)
_JAAS_STOP = expression(r"""[;\n]|\\*["']""")


def headers(data: bytes) -> Iterator[Stretch]:
    """Yield the credentials of Authorization headers, those behind the name of a scheme alone, and cookies."""
    at, lines = 0, NumberedLines(data)
    while (hit := _AUTHORIZATION.search(data, at)) is not None:
        at = hit.end()
        stretch = _credentials(data, at, lines.end(at), hit.group(2) or hit.group(1) or b"", (hit.group(3) or b"").lower())
        if stretch is not None:
            yield stretch
            at = max(at, stretch[1])
    for hit in _SCHEME.finditer(data):
        if len(hit.group(1)) >= 8 and _MIXED_CASE.search(hit.group(1)) is not None:
            yield hit.span(1)
    for hit in _DIGEST.finditer(data):
        if not names.is_nothing(hit.group()[7:].lstrip()):
            yield hit.start() + 7, hit.end()
    yield from _cookies(data)


def scram(data: bytes) -> Iterator[Stretch]:
    """Yield the salts, proofs and signatures of SCRAM messages."""
    for hit in _SCRAM.finditer(data):
        yield next(hit.span(group) for group in (1, 2, 3) if hit.group(group) is not None)


def jaas(data: bytes) -> Iterator[Stretch]:
    """Yield the options of login modules, without the class name in front of them."""
    at, lines = 0, NumberedLines(data)
    while (hit := _JAAS_SETTING.search(data, at)) is not None:
        quote, begin = hit.group(1) or b"", hit.end()
        end = lines.end(begin)
        stop = closing_quote(data, begin, quote, end) if quote else _module_end(data, begin, end)
        module = _MODULE.match(data, begin, stop)
        spoken = module is None and not quote and data[begin - 2 : begin - 1] == b":" and b"=" not in data[begin:stop]
        if not spoken and not names.is_nothing(data[begin:stop].strip()):
            yield begin if module is None else module.end(), stop
        at = max(stop, begin)
    at, lines = 0, NumberedLines(data)
    while (hit := _JAAS.search(data, at)) is not None:
        at = _module_end(data, hit.end(), lines.end(hit.end()))
        if hit.end() < at:
            yield hit.end(), at


def _credentials(data: bytes, at: int, end: int, quote: bytes, scheme: bytes) -> Stretch | None:
    cut_off = False
    if quote:
        stop = closing_quote(data, at, quote, end)
    elif scheme.startswith(_LISTS):
        stop = end
    else:
        stop = token_end(data, at, min(end, at + BEGINNING))
        cut_off = stop == at + BEGINNING
    value = data[at:stop]
    secret = not names.is_nothing(value) and (bool(scheme and not names.is_prose(value)) or names.is_mixed(value))
    if secret and cut_off:
        stop = token_end(data, at, end)
    return (at, stop) if secret else None


def _cookies(data: bytes) -> Iterator[Stretch]:
    at, lines = 0, NumberedLines(data)
    while (hit := _COOKIE.search(data, at)) is not None:
        at, quote = hit.end(), hit.group(3) or (hit.group(1) if not hit.group(2) else b"") or b""
        end = lines.end(at)
        stop = closing_quote(data, at, quote, end) if quote else end
        if _CRUMB.match(data, at, stop) is not None:
            yield at, stop
            at = stop


def _module_end(data: bytes, at: int, end: int) -> int:
    """Return the end of a login module's options: the first semicolon or line end outside a quoted value."""
    while (hit := _JAAS_STOP.search(data, at, end)) is not None:
        if hit.group() == b";":
            return int(hit.start())
        quote = opening_quote(data, hit.start(), end)
        close = closing_quote(data, hit.end(), quote, end)
        at = min(end, close + len(quote))
    return end
