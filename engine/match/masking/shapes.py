"""Finds secrets by their own shape: tokens and keys of vendors, JSON Web Tokens, private keys in PEM."""

from __future__ import annotations

from collections.abc import Iterator

from engine.match.checks import expression
from engine.match.masking import Stretch

# the shapes that vendors document or publish for secret scanners; in a log a lower bound of the length is enough
_VENDORS = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AIPA|AGPA|ANPA|ANVA)[A-Z0-9]{12,}",  # AWS
    r"AIza[\w\-]{20,}|ya29\.[\w\-]{8,}|GOCSPX-[\w\-]{8,}|1//0[\w\-]{20,}",  # Google
    r"LTAI[A-Za-z0-9]{10,}|AKID[A-Za-z0-9]{16,}|AKTP[A-Za-z0-9]{16,}",  # Alibaba, Tencent, Volcengine
    r"do[oprt]_v[0-9]_\w{8,}",  # DigitalOcean
    r"gh[pousr]_\w{5,}|github_pat_\w{5,}",
    r"gl(?:pat|dt|ft|soat|rt|rtr|cbt|imt|ptt|agent|oas|ffct)-[\w\-.]{8,}",  # GitLab
    r"xox[a-z](?:\.xox[a-z])?-[\w\-]{8,}|xapp-[\w\-]{8,}",  # Slack
    r"[rsp]k_(?:live|test|prod)_\w{8,}|whsec_\w{8,}",  # Stripe
    r"npm_\w{12,}|pypi-AgE[\w\-]{8,}|pypi-[\w\-]{60,}|rubygems_\w{20,}|dckr_(?:pat|oat)_[\w\-]{8,}|oy2[a-z0-9]{43}",
    r"SG\.[\w\-]{8,}\.[\w\-]{8,}|(?:AC|SK)[0-9a-f]{32}|key-[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]{1,2}",  # SendGrid, Twilio, Mailgun
    r"dapi[A-Za-z0-9]{16,}(?:-[0-9])?|dkea[A-Za-z0-9]{16,}",  # Databricks
    r"hf_[A-Za-z0-9]{10,}|api_org_\w{20,}|r8_\w{20,}|gsk_\w{20,}|xai-\w{20,}|pplx-\w{20,}",  # models
    r"NR(?:AK|II|IQ|RA|JS|BR)-[\w\-]{8,}|\w{30,40}NRAL",  # New Relic
    r"ATATT3\S{8,}|ATBB\w{20,}|ATCTT3\S{8,}|lin_api_\w{8,}|ntn_\w{20,}|secret_\w{40,}|figd_[\w\-]{8,}|PMAK-[\w\-]{16,}",
    r"hv[sbr]\.[\w\-]{8,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.\-]{8,}|"
    r"[\w]{14}\.atlasv[0-9]\.[\w\-]{8,}",  # Vault, Doppler, Terraform
    r"glsa_\w{8,}|glc_[\w=+/]{8,}|sntry[su]_\w{8,}|shp(?:at|ca|pa|ss|tka)_\w{8,}|sq[0-9](?:atp|csp|idp)-[\w\-]{8,}|EAAA[\w\-]{40,}",
    r"pscale_(?:tkn|pw|oauth)_[\w\-.]{8,}|HRKU-[\w\-]{8,}|AGE-SECRET-KEY-\w{8,}|sbp_\w{20,}|mdb_sa_sk_\w{8,}|pul-[0-9a-f]{20,}",
    r"bkua_\w{20,}|CCIPAT_\w{8,}|AKCp\w{10,}|cmVmdGtu\w{20,}|FlyV[0-9] \S{8,}|tskey-[\w\-]{8,}|"
    r"dt[0-9]c[0-9]{2}\.\w{8,}\.\w{8,}",
    r"[0-9]{8,10}:AA[\w\-]{30,}|[MNO][\w\-]{23,25}\.[\w\-]{6}\.[\w\-]{27,}",  # Telegram, Discord
    r"[\w.~\-]{3}[0-9]Q~[\w.~\-]{20,}|cflt[A-Za-z0-9/+]{40,}",  # Microsoft Entra, Confluent
    r"eyJ[\w\-]{6,}\.[\w\-]+(?:\.[\w\-]*){0,4}",  # JSON Web Tokens
)
_HASHED = expression(  # password hashes: crypt(3), argon2, Django's PBKDF2, LDAP
    r"(?:^|[^\w$])(\$(?:apr1|1)\$[\w./]{1,8}\$[\w./]{22}|\$[56]\$(?:rounds=[0-9]+\$)?[\w./]{1,16}\$[\w./]{20,}|\$2[abxy]?\$[0-9]{2}\$[\w./]{22,}|"
    r"\$(?:y|7|gy)\$[\w./]+\$[\w./$]{20,}|\$argon2\w*\$[\w+/=$,.-]{20,}|pbkdf2_\w+\$[0-9]+\$[\w+/=$.-]{8,}|\{S?SHA(?:256|384|512)?\}[\w+/=]{16,})"
)
_SHAPES = expression(rf"(?:^|[^A-Za-z0-9])((?:{'|'.join(_VENDORS)}))")
_RANDOM = expression(r"(?:^|[^A-Za-z0-9\-])(sk-[\w\-]{16,})")  # OpenAI, Anthropic and others; also a prefix of topics
_DIGIT, _UPPER = expression(r"[0-9]"), expression(r"[A-Z]")
_BEGIN = expression(r"-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = expression(r"-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = expression(r"(?:[A-Za-z0-9+/=]{0,80}(?:\s|\\+r|\\+n)+)*[A-Za-z0-9+/=]*")


def shapes(data: bytes) -> Iterator[Stretch]:
    """Yield tokens, keys and password hashes that have a known shape."""
    for hit in _SHAPES.finditer(data):
        yield hit.span(1)
    for hit in _HASHED.finditer(data):
        yield hit.span(1)
    for hit in _RANDOM.finditer(data):
        if _DIGIT.search(hit.group(1)) is not None and _UPPER.search(hit.group(1)) is not None:
            yield hit.span(1)


def private_keys(data: bytes) -> Iterator[Stretch]:
    """Yield private keys in PEM, on several lines or on one. A key without its end line ends with its body."""
    at, ends = 0, True
    while (hit := _BEGIN.search(data, at)) is not None:
        end = _END.search(data, hit.end()) if ends else None
        ends = end is not None
        body = _BODY.match(data, hit.end())
        at = end.end() if end is not None else hit.end() if body is None else body.end()
        yield hit.start(), at
