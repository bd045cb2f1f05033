"""Recognises the names of secrets, in many languages, and the values behind them that are no secrets."""

from __future__ import annotations

from base64 import b64decode
from functools import lru_cache

from engine.match.checks import expression

_SEP = r"[._\- ]?"
# names of a password: even a plain word behind them counts as one
_KEYWORD = (
    r"pass(?:word|wd|phrase|code)|passwort|kennwort|pwd|motdepasse|mot de passe|contrase(?:ñ|n)a|palavra-passe|"
    r"비밀번호|패스워드|비번|암호|密码|密碼|口令|パスワード|暗証番号|пароль|wachtwoord|l(?:ö|o)senord|adgangskode|salasana|"
    r"jelsz(?:ó|o)|has(?:ł|l)o|şifre|mật khẩu|kata sandi|รหัสผ่าน|पासवर्ड|كلمة المرور|סיסמה|κωδικός|"
    r"(?:verification|one[ \-]time|otp)[ _\-]?code|인증번호|验证码|驗證碼|認証コード|確認コード"
)
_KEYS = (
    rf"(?:api|access|account|private|secret|shared|auth|app|application|license|licence|encryption|encrypt|signing|signature|"
    rf"master|storage|subscription|service|functions|webhook|client|stored|server|keystore|ssl|integration|ingest|ingestion|"
    rf"\brest|\bdd|\bpriv|hmac|deploy|routing|session){_SEP}key"
)
_SECRET = (
    rf"secret|secret{_SEP}id|credentials?|{_KEYS}|private{_SEP}key{_SEP}id|access{_SEP}key{_SEP}id|hmac|signature|"
    rf"api{_SEP}secret|client{_SEP}proof|seed{_SEP}phrase|mnemonic|jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|"
    r"salt|authkey|keytab{0}_?base64|"
    r"密钥|密鑰|秘钥|秘密鍵|비밀키|비밀 키|시크릿 ?키|액세스 ?키|"
    r"clave (?:secreta|privada)|chave (?:secreta|privada)|clé (?:secrète|privée)|"
    r"geheimer schlüssel|privater schlüssel|секретный ключ|закрытый ключ"
).replace("{0}", "")
_TOKENS = "tokens?|토큰|トークン|令牌|токен"
_INFO = r"(?:\b|_)auth\b|(?:auth|credentials|registry)[._\-]user[._\-]?info|(?:basic[._\-])?user[._\-]info"
_AFFIX = (
    rf"(?:s|\.?[0-9]{{1,2}}|{_SEP}(?:hash(?:ed)?|value|plain(?:text)?|confirm(?:ation)?|repeat|old|new|current|previous|prod|"
    r"production|dev|staging|test|base64|b64|enc|encrypted|encoded|primary|secondary|md5|sha(?:1|256|512)))?(?:\[[^\]\s]{0,30}\])?"
)
# these count only as a whole name or after a separator: `bypass` ends with `pass` too
_WHOLE = r"(?:^|[._\-]|u002[27])(?:pass|pw|passw|senha|parola|heslo|sig|sas|pin|otp|cvv|cvc|clave)"

_ENDS_PASSWORD = expression(rf"(?:(?:{_KEYWORD})|{_WHOLE}){_AFFIX}$", nocase=True)
_ENDS_SECRET = expression(rf"(?:{_SECRET}){_AFFIX}$", nocase=True)
_ENDS_TOKEN = expression(rf"(?:{_TOKENS}){_AFFIX}$", nocase=True)
_ENDS_INFO = expression(rf"(?:{_INFO})$", nocase=True)
_ENVIRONMENT = expression(r"[A-Z][A-Z0-9_]*(?:\[\S*\])?")
_NEUTRAL_TAIL = expression(
    r"(?:^|[_.\-])(?:file|files|path|dir|name|names|class|type|url|uri|endpoint|host|port|topic|topics|ttl|ms|seconds|length|len|"
    r"min|max|size|count|policy|reset|expiry|expires|expiration|enabled|disabled|required|version|provider|manager|store|format|"
    r"algorithm|rotation|lifetime|age|days|attempts|events|changed|header|field|prefix|suffix|id)(?:$|[_.\-])",
    nocase=True,
)

# the name of a secret in a text, with the letters around it
WORD = (
    rf"[\w.\-]*(?:{_KEYWORD}|{_SECRET}|{_TOKENS}|{_INFO}|(?:\b|u002[27])(?:pass|pw|passw|senha|parola|heslo|sig|sas|pin|"
    r"otp|cvv|cvc|clave)\b|_(?:pass|pw|sig|sas|pin|otp))[\w.\-]*"
)
NAME = rf"{WORD}(?:\[[^\]\s]*\])?"  # with an index behind it

# values that are not masked: Kafka prints a hidden one as [hidden] and an unset one as null, and a reader needs to see both
_NOTHING = expression(
    r"(?:null|nil|none|undefined|unset|empty|true|false|yes|no|on|off|n/a|not[ _]set|hidden|masked|redacted|protected|"
    r"\*+|x{3,}|-+|\.{2,}|"
    r"[\[<({*]+(?:redacted|hidden|masked|protected|secret|password|removed|null|e-mail|card|phone|"
    r"national-id|sensitive[^\]>]*)[\])}>*]+|"
    r"<[A-Z][A-Z0-9]*(?:[_\-][A-Z0-9]+)+>|<your[_\- ][\w \-]*>|"
    r"\$\{[^}\s]*\}|\$\([^)\s]*\)|\{\{[^}]*\}\}|\{\}|%[sdv@]|\$[A-Z_]+|env:\w+|file:\S*|\[\]|\(\))[.,;:)\]}]*",
    nocase=True,
)
# an error or a field of Kafka's about a topic, a partition, a request; a class; the beginning of a structure, which has names
# of its own
_STATEMENT = expression(
    r"(?:[A-Z]+_)+(?:AVAILABLE|FAILED|EXCEPTION|PARTITION|FOLLOWER|EPOCH|COORDINATOR|ERROR|TIMEOUT|TIMED_OUT|CONFIG|REQUEST|"
    r"COMMIT|OFFSET|FETCH|REPLICAS|LEADER|NONE|ID|GROUP|VERSION|STATE|OBJECT|ARRAY|STRING|NAME|NULL|FALSE|TRUE)[.,;:)\]}]*|"
    r"(?:[a-z]\w*\.)+[A-Z][\w$.]*[:,;)]*|[A-Z][A-Za-z]+[({\[].*|[a-z]\w*\(.*|\(.*|[\w.$]*[A-Z][A-Za-z]+@[0-9a-f]{6,}|"
    r"[A-Z][A-Za-z]*(?:Exception|Error)\b.*|[a-z][a-z0-9+.\-]*://.*|/(?:[\w.\-]+/)+[\w.\-]*"
)
_PROSE = frozenset(
    b"""must should cannot can could is are was were has have had not non invalid incorrect wrong missing required expired
    expires     empty blank null too the a an this that it its you your please unable failed failure failing error denied access
    authentication authorization mismatch does do did unknown unsupported rejected locked changed reset updated set unset given
    when because for from in on at of to by with and or if using via contains contain least length minimum maximum value
    verification check policy user users connection java org will would may might be been being as no bad ok okay any all end
    unexpected expecting expected found only cannot, could, type string number object array class config configuration
    protection based plugin provider file property properties field parameter option setting""".split()
)
_USER_INFO = expression(r"[^\s:]+:[^\s:/][^\n]*$")
_BASE64 = expression(r"[A-Za-z0-9+/]+={0,2}")
_IDENTIFIER = expression(r"[=:/(]|^-|^[\w.\-]+\.[a-z]+$|[0-9a-f]{8}-[0-9a-f]{4}-|^v[0-9]|-[0-9]+[.,;:)\]]*$")
_ALGORITHM = expression(
    r"(?:pbe\w*|hmac|scram|sha|md|aes|r?c|3?des|rsa|ec|pbkdf|rfc|utf|base|tls|ssl|pkcs|x|ed|s3|k8s|oauth|http)[_\-]?v?[0-9][\w\-/.]{0,24}[.,;:)]*$",
    nocase=True,
)
_HUMP = expression(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_CARD_CODE = expression(r"cv[vc][0-9]?$", nocase=True)
_CODE = expression(r"code$|인증번호$|(?:验证|驗證|認証|確認)(?:码|碼|コード)$", nocase=True)
_WORDY = expression(r"[A-Za-z][a-z]*[.,;:!?)]*")
_COMPOUND = expression(r"[a-z]+(?:[-_.][a-z]+)+[.,;:!?)]*")
_ENUMERATION = expression(r"[A-Z]+(?:_[A-Z]+)*[.,;:!?)]*")
_DIGIT = expression(r"[0-9]")
_LETTER = expression(r"[A-Za-z]")

PASSWORDS, SECRETS, TOKENS, INFOS = "password", "secret", "token", "info"


_LONGEST = 128  # bytes of a name


@lru_cache(4096)
def kind_of(name: bytes) -> str | None:
    """Return PASSWORDS, SECRETS, TOKENS or INFOS (a user with a password), the kind of secret that has this name; None when it
    is no name of a secret.

    A name has to end with the word for the secret: `password.reset` and `secret-events` are topics. Only environment variables
    may have it elsewhere (`SECRET_KEY_BASE`).
    """
    if len(name) > _LONGEST:
        return kind_of(name[-_LONGEST:])
    if _ENDS_INFO.search(name):
        return INFOS
    if _ENDS_PASSWORD.search(name):
        return PASSWORDS
    if _ENDS_TOKEN.search(name):
        return TOKENS
    if _ENDS_SECRET.search(name):
        return SECRETS
    environment = b"_" in name and _ENVIRONMENT.fullmatch(name) is not None
    return SECRETS if environment and _NEUTRAL_TAIL.search(name) is None else None


def is_nothing(value: bytes) -> bool:
    """Tell whether a value needs no mask: it is empty, unset, a switch, a placeholder, or masked already."""
    return not value or _NOTHING.fullmatch(value) is not None


def is_user_info(value: bytes) -> bool:
    """Tell whether a value is a user with a password, or both in base64."""
    if _USER_INFO.match(value) is not None:
        return True
    if len(value) % 4 or len(value) < 8 or _BASE64.fullmatch(value) is None:
        return False
    plain = b64decode(value)
    return plain.isascii() and _USER_INFO.match(plain) is not None


def is_identifier(value: bytes) -> bool:
    """Tell whether a value is a host with a port, a version, a UUID or a name with a number."""
    return _IDENTIFIER.search(value) is not None


def is_code(name: bytes) -> bool:
    """Tell whether a name is that of a numeric code sent to a person."""
    return _CODE.search(name) is not None and not name.lower().endswith(b"passcode")


def has_digit(value: bytes) -> bool:
    """Tell whether a value holds a digit."""
    return _DIGIT.search(value) is not None


def is_algorithm(value: bytes) -> bool:
    """Tell whether a value is the name of an algorithm for hashing, encryption or encoding."""
    return _ALGORITHM.match(value) is not None


def is_shuffled(value: bytes) -> bool:
    """Tell whether upper and lower case alternate more often in a value than they do in words."""
    return len(value) >= 12 and len(_HUMP.findall(value)) * 4 >= len(value)


def is_card_code(name: bytes) -> bool:
    """Tell whether a name is that of the three or four digits on the back of a payment card."""
    return _CARD_CODE.search(name) is not None


def is_statement(value: bytes) -> bool:
    """Tell whether a value is an error of Kafka, a class, a path or the beginning of a structure."""
    return _STATEMENT.fullmatch(value) is not None


def is_prose(value: bytes) -> bool:
    """Tell whether a value is a word of a sentence about a secret, such as `must` or `incorrect`."""
    return value.lower().rstrip(b".,;:!?)") in _PROSE


def is_wordy(value: bytes) -> bool:
    """Tell whether a value looks like a word or a name in a sentence: letters only, in usual case."""
    return any(shape.fullmatch(value) is not None for shape in (_WORDY, _COMPOUND, _ENUMERATION))


def is_mixed(value: bytes, least: int = 6) -> bool:
    """Tell whether a value has both letters and digits, and at least `least` characters."""
    return len(value) >= least and _DIGIT.search(value) is not None and _LETTER.search(value) is not None
