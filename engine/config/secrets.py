"""Secrets and addresses in tocsin.yml: the types of their keys, and the masking of secrets that are written into the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import BeforeValidator, Field

from engine.config.faults import finding_error
from engine.dsl.codes import Code
from engine.model.addresses import is_web_address, may_carry_secrets
from engine.secrets import Secret, is_secret_setting, parse_secret

# keys whose values are secret and must not get into a message about the file
_WRITTEN = re.compile(
    r"""(\b(?:token|app_token|webhook_url|url|urls|api_key|password|routing_key)["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^\s,}]+)"""
)
# a password within an address, under any key
_WITHIN = re.compile(r"""(://[^\s:/]*:)([^\s"']+)(?=@)|([?&](?:ssl)?password=)([^\s"'&]+)""")


_SPARK_WRITTEN = re.compile(r"""(\bspark\.[\w.-]+)(["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^\s,}]+)""")


def without_secrets(line: str) -> str:
    """Return a line of a configuration with the values of secret keys and the passwords within addresses masked by stars,
    unless they are references."""
    masked = _WRITTEN.sub(lambda match: match[1] + _starred(match[2]), line)
    masked = _SPARK_WRITTEN.sub(
        lambda match: match[1] + match[2] + (_starred(match[3]) if is_secret_setting(match[1]) else match[3]), masked
    )
    return _WITHIN.sub(lambda match: (match[1] or match[3]) + "*" * len(match[2] or match[4]), masked)


def _starred(value: str) -> str:
    return value if value.strip("\"'").startswith(("env:", "file:")) else "*" * len(value)


def _secret(value: Any) -> Any:
    try:
        return parse_secret(value)
    except (ValueError, AttributeError):
        help = "put it into an environment variable or a file, and write env:NAME or file:PATH here"
        raise finding_error(Code.BAD_SECRET, "must not hold the secret itself", help) from None


def _protected(value: Any) -> Any:
    if not isinstance(value, str) or not may_carry_secrets(value):
        message = f"`{value}` is not an address that may be sent a secret"
        raise finding_error(Code.BAD_ADDRESS, message, "write https://..., or http on localhost")
    return value


def _address(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("env:", "file:")):
        return _secret(value)
    if not isinstance(value, str) or not is_web_address(value) or "@" in value:
        help = "write https://..., or env:NAME or file:PATH when the address holds a password"
        raise finding_error(Code.BAD_ADDRESS, "must be an http address without a password", help)
    return value


_Reference = Annotated[str, Field(pattern="^(env|file):.")]
SecretText = Annotated[Any, BeforeValidator(_secret, json_schema_input_type=_Reference)]
ProtectedAddress = Annotated[str, BeforeValidator(_protected)]
Address = Annotated[Any, BeforeValidator(_address, json_schema_input_type=str)]


def placed_address(address: str | Secret, folder: Path) -> str | Secret:
    """Return an address, or the secret that holds it, with the path of a `file:` reference resolved against `folder`."""
    return placed(address, folder) or address if isinstance(address, Secret) else address


def placed(secret: Secret | None, folder: Path) -> Secret | None:
    """Return `secret` with the path of a `file:` reference resolved against `folder`; None for None."""
    if secret is None or secret.kind != "file":
        return secret
    return replace(secret, name=str(folder / secret.name))
