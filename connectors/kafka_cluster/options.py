"""The `options` of a source of type kafka-cluster: in the spelling of librdkafka, like those of type kafka, for kafka-python.

Only options about the connection are taken, because nothing else matters to a client that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import SourceError
from engine.secrets import parse_secret

SECRETS = frozenset(("sasl.password", "ssl.key.password"))
_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "enable.ssl.certificate.verification": "",
}
_VALUES: Mapping[str, Callable[[str], Any]] = {
    "security.protocol": str.upper,
    "sasl.mechanism": str.upper,
    "sasl.mechanisms": str.upper,
    "ssl.endpoint.identification.algorithm": lambda value: value != "none",
}


def check_option(name: str, value: str) -> str | None:
    """Return an error text for an option; None when it is allowed."""
    if name == "enable.ssl.certificate.verification":
        return f"`{name}` cannot be set here: name the authority of the brokers' certificates with ssl.ca.location"
    if name not in _NAMES:
        return f"`{name}` is no option of a client that asks; it takes {', '.join(sorted(filter(_NAMES.get, _NAMES)))}"
    if name in SECRETS and not value.startswith(("env:", "file:")):
        return f"`{name}` is a secret: write where it is stored, as env:NAME or file:PATH"
    return None


def client_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return `options` as the arguments of kafka-python's clients, with the secrets in place. Raises UsageError when a secret
    cannot be read, and SourceError for an option that is not allowed."""
    arguments = dict[str, Any]()
    for name, value in options.items():
        if error := check_option(name, value):
            raise SourceError(error)
        plain = parse_secret(value).reveal() if value.startswith(("env:", "file:")) else value
        arguments[_NAMES[name]] = _VALUES.get(name, str)(plain)
    return arguments
