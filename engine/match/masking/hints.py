"""Hints: cheap expressions, of which one matches in every text with a secret. HINT combines them; few texts match it.

A hint tells no digit from another, so it gives the same answer for texts that differ in digits only.
"""

from __future__ import annotations

import re2

from engine.match.checks import expression

_NAMES = (
    r"passw|passphrase|passcode|pwd|secret|credential|token|signature|hmac|storepass|keypass|passin|passout|pass:|sessid|sessionid|"
    r"connect\.sid|mnemonic|seed.?phrase|client.?proof|salt|user[._\-]?info|(?:\b|_)auth[\"'\\&%\]]*[ \t]*[=:>%]|authkey|"
    r"(?:\b|_|u[0-9]{4})(?:pass|pw|senha|parola|heslo|sig|sas|pin|otp|cvv|cvc|clave)(?:\b|[_0-9])|"
    r"(?:api|access|account|private|shared|app|application|license|licence|encrypt|encryption|signing|master|storage|subscription|service|"
    r"functions|webhook|client|stored|server|keystore|ssl|integration|ingest|ingestion|rest|dd|priv|deploy|"
    r"routing|session)[._\- ]?key"
)
_NEAR = (
    r"\b(?:[a-z0-9]+[_ ])?(?:key|token|secret|signature|credential|cookie|"
    r"session)s?(?:[^\w.\-/\n][^\n]*)?[^\w.\-/\n][^\n]*[a-z0-9+/_\-]{20}|"
    r"\b(?:signed|nonce|auth\w*|private|access|passw\w*|passphrases?|hmac|bearer|apikey)(?:[^\w.\-/\n][^\n]*)?[^\w.\-/\n][^\n]*[a-z0-9+/_\-]{20}"
)
_PROTOCOLS = (
    r"authorization|bearer|negotiate|ntlm|basic[ \t]+[a-z0-9+/=]{8}|digest[ \t]+\w+[ \t]*=|cookie|jaas|login(?:module)?\s"
)
_LANGUAGES = (
    r"kennwort|mot ?de ?passe|contrase|palavra-passe|비밀번호|패스워드|비번|암호|密码|密碼|口令|パスワード|暗証番号|"
    r"пароль|wachtwoord|l(?:ö|o)senord|"
    r"adgangskode|salasana|jelsz|has(?:ł|l)o|şifre|mật khẩu|kata sandi|รหัสผ่าน|पासवर्ड|كلمة المرور|סיסמה|κωδικός|passwort|"
    r"密钥|密鑰|秘钥|秘密鍵|비밀 ?키|시크릿 ?키|액세스 ?키|clave |chave |clé |geheimer schl|privater schl|секретный|закрытый|"
    r"토큰|トークン|令牌|токен|(?:verification|one[ \-]time|otp)[ _\-]?code|인증번호|验证码|驗證碼|認証コード|確認コード"
)
_ADDRESSES = (
    r"://[^\s\"'<>]*@|@(?:tcp\w*|udp|unix|cloudsql\w*)\(|jdbc:oracle|sqlplus|sqlldr|expdp|impdp|rman\s|"
    r"(?:hooks\.|webhook|/hooks?/|discord|chat\.googleapis|api\.telegram|maker\.ifttt|hc-ping|/open-apis/|/robot/|cgi-bin|logic\.azure|"
    r"events\.pagerduty|opsgenie|victorops)|[?&;](?:sig|sign|q-sign\w*|x-(?:amz|goog|oss|cos|obs|ms)-\w+|key|code|auth|apikey|k|hmac|ossaccesskeyid|"
    r"googleaccessid|access_?key\w*)="
)
_COMMANDS = (
    r"identified\s|(?:crypt\w*|hmac)\s*\(|(?:^|\s)(?:-u|--(?:proxy-)?user|--basic-auth|--auth)[\s=]*[\"'\\]*[^\s:\"'/=-][^\s:\"'/]*:|"
    r"\b(?:mysql|mariadb|mongo|sshpass|[0-9]za?\b|plink|unzip|zip\b|htpasswd|smbclient|rpcclient|net|docker login|podman login|"
    r"redis-cli|ldap\w|sqlcmd|"
    r"bcp\b)[^\n|]*\s-"
)
_SHAPES = (
    r"(?:\b|_)(?:a(?:kia|sia|bia|cca|roa|ida|ipa|gpa|npa|nva)[a-z0-9]{12}|aiza|ya[0-9]{2}\.|gocspx-|[0-9]//[0-9]|ltai[a-z0-9]|ak(?:id|tp)[a-z0-9]|do[oprt]_v|gh[pousr]_|"
    r"github_pat_|gl[a-z]{2,6}-|xox[a-z][.\-]|xapp-|[rsp]k_|whsec_|npm_|pypi-|rubygems_|dckr_|oy[0-9]|sg\.[\w\-]{8}|(?:ac|sk|key-)[0-9a-f]{32}|"
    r"[0-9a-f]{32}-us|dapi|dkea|hf_|api_org_|r[0-9]_|gsk_|xai-|pplx-|nr[a-z]{2}-|at(?:att|bb|ctt)|lin_api|ntn_|figd_|pmak-|hv[sbr]\.|"
    r"dp\.[a-z]|gl(?:sa|c)_|sntry|shp[a-z]{2,3}_|sq[0-9]|eaaa|pscale_|hrku-|age-|sbp_|mdb_sa|pul-|bkua_|ccipat|akcp|cmvmdgtu|flyv|tskey-|"
    r"dt[0-9]c|[0-9]{8,10}:|[mno][\w\-]{23,25}\.[\w\-]{6}\.|cflt|eyj|sk-[\w\-]{16})|\w{30}nral|atlasv|[0-9]q~|-----? ?begin|"
    r"\$(?:apr[0-9]|[0-9][abxy]?|sha[0-9]?|y|gy|argon\w*)\$|pbkdf[0-9]_|\{s?sha[0-9]*\}"
)
_SCRAM = r"\b[sv]=[a-z0-9+/]{6}|,p=[a-z0-9+/]"
_NUMBERS = (
    r"[0-9]{14}|[0-9]{4}[ .\-][0-9]{4}[ .\-][0-9]{4}[ .\-]|[0-9]{4}[ \-][0-9]{6}[ \-][0-9]{4}|[0-9]{6}[ \-‐–—−][0-9]{7}|"
    r"주민|외국인등록번호|\bssn|social[ _\-]?security|resident|\brrn|jumin|"
    r"(?:\btel\b|phone|mobile|\bcell\b|\bfax\b|msisdn|whatsapp|전화|휴대폰|핸드폰|연락처|電話|电话|手机|手機|携帯|telefon|téléphone|teléfono|móvil|телефон)"
    r"[^\n]*[0-9]"
)
_MAILS = r"(?:@|%[0-9]{2})[\pL0-9\-]+\."
_PHONES = r"[0-9][ .\-)]*[0-9]{3,4}[ .\-]?[0-9]{4}|\+[0-9]"

GROUPS = {
    "names": f"{_NAMES}|{_LANGUAGES}",
    "near": _NEAR,
    "protocols": _PROTOCOLS,
    "scram": _SCRAM,
    "addresses": _ADDRESSES,
    "commands": _COMMANDS,
    "shapes": _SHAPES,
    "numbers": _NUMBERS,
    "mails": _MAILS,
}
HINT = expression("|".join(GROUPS.values()), nocase=True)
PHONE_HINT = expression(_PHONES)


def hint_of(group: str) -> re2._Regexp:
    """Return the hint of a group of finders: in a text that it does not match, they find nothing."""
    return expression(GROUPS[group], nocase=True)
