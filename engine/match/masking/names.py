"""Names of secrets and what looks like a value of one: the words, in many languages, and what is no secret behind them."""

from __future__ import annotations

from functools import lru_cache

from engine.match.checks import expression

_SEP = r"[._\- ]?"
# a password, whatever is around it: even a plain word behind it is taken for one
_KEYWORD = (
    r"pass(?:word|wd|phrase|code)|passwort|kennwort|pwd|motdepasse|mot de passe|contrase(?:ñ|n)a|palavra-passe|"
    r"비밀번호|패스워드|비번|암호|密码|密碼|口令|パスワード|暗証番号|пароль|wachtwoord|l(?:ö|o)senord|adgangskode|salasana|"
    r"jelsz(?:ó|o)|has(?:ł|l)o|şifre|mật khẩu|kata sandi|รหัสผ่าน|पासवर्ड|كلمة المرور|סיסמה|κωδικός"
)
_KEYS = (
    rf"(?:api|access|account|private|secret|shared|auth|app|application|license|licence|encryption|encrypt|signing|signature|"
    rf"master|storage|subscription|service|functions|webhook|client|stored|server|keystore|ssl|integration|ingest|ingestion|"
    rf"rest|dd|priv|hmac|deploy|routing){_SEP}key"
)
_SECRET = (
    rf"secret|secret{_SEP}id|credentials?|{_KEYS}|private{_SEP}key{_SEP}id|access{_SEP}key{_SEP}id|hmac|signature|"
    rf"api{_SEP}secret|client{_SEP}proof|seed{_SEP}phrase|mnemonic|jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|"
    r"salt|authkey|keytab{0}_?base64"
).replace("{0}", "")
_TOKENS = "tokens?"
_INFO = r"\bauth\b|(?:auth|credentials|registry)[._\-]user[._\-]?info|(?:basic[._\-])?user[._\-]info"
_AFFIX = (
    rf"(?:s|[0-9]{{1,2}}|{_SEP}(?:hash(?:ed)?|value|plain(?:text)?|confirm(?:ation)?|repeat|old|new|current|previous|prod|"
    r"production|dev|staging|test|base64|b64|enc|encrypted|encoded|primary|secondary|md5|sha(?:1|256|512)))?(?:\[[^\]\s]{0,30}\])?"
)
# words that are whole names only, or follow a separator: `pass` ends `bypass` too
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

# the names that a text may hold, with whatever is around the words
NAME = (
    rf"[\w.\-]*(?:{_KEYWORD}|{_SECRET}|{_TOKENS}|{_INFO}|(?:\b|u002[27])(?:pass|pw|passw|senha|parola|heslo|sig|sas|pin|"
    r"otp|cvv|cvc|clave)\b|_(?:pass|pw|sig|sas|pin|otp))[\w.\-]*(?:\[[^\]\s]*\])?"
)

# Kafka prints what it hides as [hidden], and an unset secret as null: both are worth reading
_NOTHING = expression(
    r"(?:null|nil|none|undefined|unset|empty|true|false|yes|no|on|off|n/a|not[ _]set|hidden|masked|redacted|protected|"
    r"\*+|x{3,}|-+|\.{2,}|"
    r"[\[<({*]+(?:redacted|hidden|masked|protected|secret|password|removed|null|e-mail|card|phone|"
    r"national-id|sensitive[^\]>]*)[\])}>*]+|"
    r"\$\{[^}\s]*\}|\$\([^)\s]*\)|\{\{[^}]*\}\}|\{\}|%[sdv@]|\$[A-Z_]+|env:\w+|file:\S*|\[\]|\(\))[.,;:)\]}]*",
    nocase=True,
)
# what Kafka says of a topic, a partition, a request; a class; the beginning of a structure, whose names speak for themselves
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
_WORDY = expression(r"[A-Za-z][a-z]*[.,;:!?)]*")
_COMPOUND = expression(r"[a-z]+(?:[-_.][a-z]+)+[.,;:!?)]*")
_ENUMERATION = expression(r"[A-Z]+(?:_[A-Z]+)*[.,;:!?)]*")
_DIGIT = expression(r"[0-9]")
_LETTER = expression(r"[A-Za-z]")

PASSWORDS, SECRETS, TOKENS, INFOS = "password", "secret", "token", "info"


_LONGEST = 128  # bytes of a name


@lru_cache(4096)
def kind_of(name: bytes) -> str | None:
    """Return what a name is of: a password, a secret, a token, a user with a password; None when it is no name of a secret.

    The word of a secret ends its name, but for that of an environment variable (`SECRET_KEY_BASE`): `password.reset` and
    `secret-events` are topics.
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
    """Tell whether a value is none: unset, a switch, a placeholder, hidden already."""
    return not value or _NOTHING.fullmatch(value) is not None


def is_user_info(value: bytes) -> bool:
    """Tell whether a value is a user with a password."""
    return _USER_INFO.match(value) is not None


def is_statement(value: bytes) -> bool:
    """Tell whether a value is an error of Kafka, a class, a path or the beginning of a structure."""
    return _STATEMENT.fullmatch(value) is not None


def is_prose(value: bytes) -> bool:
    """Tell whether a value is a word of a sentence about a secret, such as `must` or `incorrect`."""
    return value.lower().rstrip(b".,;:!?)") in _PROSE


def is_wordy(value: bytes) -> bool:
    """Tell whether a value consists of letters as a word or a name in a sentence does."""
    return any(shape.fullmatch(value) is not None for shape in (_WORDY, _COMPOUND, _ENUMERATION))


def is_mixed(value: bytes) -> bool:
    """Tell whether a value holds letters and digits, and six of them at least."""
    return len(value) >= 6 and _DIGIT.search(value) is not None and _LETTER.search(value) is not None
