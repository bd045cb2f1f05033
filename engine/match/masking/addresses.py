"""Finds credentials in addresses: in front of the host of a URL, in Oracle's connect strings, in paths of webhooks, in signed
queries."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch, names

_URL = expression(r"[a-z][a-z0-9+.\-]*://([^\s\"'<>`]+)", nocase=True)
_PORT = expression(r"[0-9]{1,5}")
_PLAIN_USER = expression(r"[A-Za-z][A-Za-z_.\-]{0,31}")
_ORACLE = expression(
    r"(?:\bjdbc:oracle:\w+:|\b(?:sqlplus|sqlldr|expdp|impdp|rman|tnsping)\s+(?:-\w+\s+)*)([\w$#.\-]+)/([^\s@/][^\s]*|\"[^\"\n]*\")@"
)
_GO = expression(r"(?:^|[\s\"'`=(])[\w.\-]+:([^\s\"'`]+)@(?:tcp6?|udp|unix|cloudsql\w*)\(")  # the DSN of Go's MySQL driver
_HOOK = expression(
    r"https?://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|(?:\w+\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/|"
    r"[\w.\-]*webhook\.office\.com/|outlook\.office(?:365)?\.com/webhook/|chat\.googleapis\.com/v[0-9]/|"
    r"api\.telegram\.org/bot|hooks\.zapier\.com/|maker\.ifttt\.com/|webhook\.site/|hc-ping\.com/|"
    r"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/|oapi\.dingtalk\.com/robot/|qyapi\.weixin\.qq\.com/cgi-bin/webhook/|"
    r"[\w.\-]*logic\.azure\.com(?::[0-9]+)?/workflows/|events\.pagerduty\.com/integration/|api\.opsgenie\.com/v[0-9]/json/\w+\?|"
    r"alert\.victorops\.com/integrations/|[\w.\-]+/(?:api/)?(?:web)?hooks?/(?:[\w\-]+/)*?[\w\-]{16,})([^\s\"'<>`)\]},]*)",
    nocase=True,
)
_HOST = expression(r"https?://[^/\s]+/", nocase=True)
_QUERY = expression(
    r"[?&;](?:sig|signature|x-(?:amz|goog|oss|cos|obs|ms)-(?:signature|security-token|credential)|ossaccesskeyid|q-signature|sign|key|"
    r"code|auth|apikey|k|hmac|access_?key(?:_?id)?|googleaccessid)=([^\s&\"'<>;#)\]}]{4,})",
    nocase=True,
)


def addresses(data: bytes) -> Iterator[Stretch]:
    """Yield the user and password of URLs, whatever characters a password has, and passwords in connect strings. A plain user
    without a password is not yielded."""
    for match in _URL.finditer(data):
        end = _userinfo_end(match.group(1))
        if end:
            yield match.start(1), match.start(1) + end
    for match in _ORACLE.finditer(data):
        yield match.span(2)
    for match in _GO.finditer(data):
        if not names.is_nothing(match.group(1)):
            yield match.span(1)


def hooks(data: bytes) -> Iterator[Stretch]:
    """Yield the paths of webhooks, and the signatures and keys in the queries of addresses."""
    for match in _HOOK.finditer(data):
        host = _HOST.match(data, match.start(), match.end())
        if host is not None and host.end() < match.end() and not names.is_nothing(data[host.end() : match.end()]):
            yield host.end(), match.end()
    for match in _QUERY.finditer(data):
        if not names.is_nothing(match.group(1)) and not match.group(1).isdigit():
            yield match.span(1)


def _userinfo_end(rest: bytes) -> int:
    """Return the length of the user and password at the beginning of `rest`, the part of a URL behind `://`; 0 when there are
    none."""
    if b"@" not in rest:
        return 0
    cut = min((at for mark in b"/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    user, at_sign, _ = rest[:cut].rpartition(b"@")
    if at_sign:
        if b":" not in user:
            return 0 if names.is_nothing(user) or _PLAIN_USER.fullmatch(user) else len(user)
        query = rest.find(b"?")
        last = rest.rfind(b"@", 0, len(rest) if query < 0 else query)  # the password may contain a slash
        return _unless_hidden(rest[: max(last, len(user))])
    name, colon, after = rest[:cut].partition(b":")
    if not colon or name.startswith(b"[") or _PORT.fullmatch(after) or b"," in name:
        return 0  # host and port; the `@` is in the path
    return _unless_hidden(rest[: rest.rfind(b"@")])


def _unless_hidden(userinfo: bytes) -> int:
    return 0 if names.is_nothing(userinfo.rpartition(b":")[2]) else len(userinfo)
