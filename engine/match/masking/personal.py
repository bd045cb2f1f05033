"""Finds personal data: numbers of payment cards, resident registration numbers, telephone numbers, e-mail addresses."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch

_CARD = expression(
    r"(?:^|[^\w.+/\-])([0-9]{14,19}|[0-9]{4}([ .\-])[0-9]{4}[ .\-][0-9]{4}[ .\-][0-9]{2,7}|"
    r"[0-9]{4}[ \-][0-9]{6}[ \-][0-9]{4,5})(?:$|[^\w/\-]|-?$)"
)
# a word directly before a number that makes it a measurement and no card
_MEASURE = expression(
    r"(?:offsets?|timestamps?|time|epoch|position|bytes|size|zxid|pid|producer_?id|sequence|seq|lag|ms|us|ns|nanos|micros|count|sum|"
    r"memory|end|start|hw|leo|watermark|checksum|crc|scn|lsn|xid|txid|wrote|read|sent|received)[\"']?\s*(?:=|:|\bis\b|\bof\b|\bto\b|\bfrom\b|\bat\b)?\s*[\"'(\[{]?$",
    nocase=True,
)
_UNIT = expression(
    r"[ \t]*(?:bytes?|[kmg]i?b|[mun]s|millis\w*|nanos\w*|micros\w*|records?|messages?|events?|rows?)\b", nocase=True
)
_TRACK = expression(r"(?:%[A-Z]|;)([0-9]{14,19})[\^=]")  # the track of a magnetic stripe
_RESIDENT = expression(
    r"(?:^|[^\w.+/\-])([0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])[ \-‐–—−]([1-8])[0-9]{6}(?:$|[^\w/\-])"
)
_RESIDENT_NAMED = expression(
    r"(?:주민(?:등록)?번호|외국인등록번호|resident\w*(?: registration)?(?: (?:number|no\.?))?|\brrn|"
    r"jumin\w*)\W{0,4}([0-9]{6}[ ]?[ \-‐–—−]?[ ]?[0-9]{7})(?:$|[^\w])",
    nocase=True,
)
_SOCIAL_NAMED = expression(
    r"(?:\bssn|social[ _\-]?security(?:[ _\-]?(?:number|num|no\.?))?)\W{0,4}([0-9]{3}[ \-]?[0-9]{2}[ \-]?[0-9]{4})(?:$|\W)",
    nocase=True,
)
_PHONE_NAMED = expression(
    r"(?:\btel\b|telephone|\bphone|mobile|\bcell\b|\bfax\b|msisdn|whatsapp|전화(?:번호)?|휴대폰|핸드폰|연락처|電話|电话|手机|手機|携帯|telefon|"
    r"téléphone|teléfono|móvil|телефон)[\w.]*(?: (?:number|no\.?|nr\.?))?[\"']?[\s:=#.]{1,3}[\"']?"
    r"(\+?\(?[0-9][0-9 ().\-]{5,17}[0-9])",
    nocase=True,
)
_PHONE = expression(
    r"(?:^|[^\w.+:/@\-])(\+[0-9]{1,3}[ .\-]?\(?[0-9]{1,4}\)?(?:[ .\-]?[0-9]{2,4}){2,4}|"
    r"01[016789][ .\-]?[0-9]{3,4}[ .\-]?[0-9]{4}|"
    r"0[0-9]{1,2}[ .\-][0-9]{3,4}[ .\-][0-9]{4}|\(?[2-9][0-9]{2}\)?[ .\-][0-9]{3}[ .\-][0-9]{4})(?:$|[^\w/:\-])"
)
# a quorum voter `1@host.example.com:9093` and a Kerberos principal `kafka/host@EXAMPLE.COM` also match
_MAIL = expression(r"([\pL0-9._%+\-]+)(?:@|%40)([\pL0-9\-]+(?:\.[\pL0-9\-]+)*\.\pL{2,})(?:\b|$)", nocase=True)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def cards(data: bytes) -> Iterator[Stretch]:
    """Yield numbers of payment cards: with an issuer's prefix and length, and Luhn's check digit."""
    for hit in _CARD.finditer(data):
        digits = bytes(byte for byte in hit.group(1) if byte not in b" .-").decode()
        begin = hit.start(1)
        measure = _MEASURE.search(data[max(0, begin - 24) : begin]) or _UNIT.match(data, hit.end(1))
        if _is_issued(digits) and luhn(digits) and measure is None:
            yield hit.span(1)
    for hit in _TRACK.finditer(data):
        if luhn(hit.group(1).decode()):
            yield hit.span(1)


def residents(data: bytes) -> Iterator[Stretch]:
    """Yield Korean resident registration numbers, and social security numbers behind a word for them.

    Korean numbers issued since October 2020 have no check digit, so a valid date and a valid seventh digit decide.
    """
    for hit in _RESIDENT.finditer(data):
        if int(hit.group(3)) <= _DAYS[int(hit.group(2)) - 1]:
            yield hit.start(1), hit.start(4) + 7
    for shape in (_RESIDENT_NAMED, _SOCIAL_NAMED):
        for hit in shape.finditer(data):
            yield hit.span(1)


def named_phones(data: bytes) -> Iterator[Stretch]:
    """Yield telephone numbers behind a word for them."""
    return (hit.span(1) for hit in _PHONE_NAMED.finditer(data))


def phones(data: bytes) -> Iterator[Stretch]:
    """Yield numbers that have the form of a telephone number."""
    return (hit.span(1) for hit in _PHONE.finditer(data))


def mails(data: bytes) -> Iterator[Stretch]:
    """Yield e-mail addresses; Kerberos principals and quorum voters are none."""
    for hit in _MAIL.finditer(data):
        principal = hit.group(2).isupper() or data[max(0, hit.start() - 1) : hit.start()] == b"/"
        if not principal and not hit.group(1).isdigit():
            yield hit.span()


def luhn(digits: str) -> bool:
    """Tell whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    doubled = (sum(divmod(int(digit) * (1 + at % 2), 10)) for at, digit in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def _is_issued(digits: str) -> bool:
    """Tell whether an issuer of payment cards uses this prefix and length."""
    size, four, two = len(digits), int(digits[:4]), int(digits[:2])
    match size:
        case 14:
            return two in (36, 38, 39) or 3000 <= four <= 3059
        case 15:
            return two in (34, 37) or four in (2131, 1800)
        case 16:
            master = 51 <= two <= 55 or 2221 <= four <= 2720
            return digits[0] == "4" or master or four == 6011 or two in (60, 62, 64, 65, 81, 94) or 3528 <= four <= 3589
        case 17 | 18 | 19:
            return (digits[0] == "4" and size == 19) or two == 62 or four in (6011, 5018, 5020, 5038, 6304, 6759, 6761, 6763)
    return False
