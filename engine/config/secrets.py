"""Secrets and addresses in tocsin.yml: where they are named, and starred out where one stands that should only be named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import BeforeValidator

from engine.config.faults import wrong
from engine.dsl.codes import Code
from engine.model.addresses import is_web_address, may_carry_secrets
from engine.secrets import Secret, parse_secret

# keys whose values are secret; what stands there must not reach a message about the file
_WRITTEN = re.compile(r"""(\b(?:token|webhook_url|url|urls|api_key|password)["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^\s,}]+)""")


def without_secrets(line: str) -> str:
    """Return a line of a configuration with the values of secret keys starred out, unless they only name a place."""
    return _WRITTEN.sub(lambda found: found[1] + _starred(found[2]), line)


def _starred(value: str) -> str:
    return value if value.strip("\"'").startswith(("env:", "file:")) else "*" * len(value)


def _secret(value: Any) -> Any:
    try:
        return parse_secret(value)
    except (ValueError, AttributeError):
        help = "put it into an environment variable or a file, and write env:NAME or file:PATH here"
        raise wrong(Code.BAD_SECRET, "must not hold the secret itself", help) from None


def _protected(value: Any) -> Any:
    if not isinstance(value, str) or not may_carry_secrets(value):
        raise wrong(Code.BAD_ADDRESS, f"`{value}` is no address for a secret", "write https://..., or http on localhost")
    return value


def _address(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("env:", "file:")):
        return _secret(value)
    if not isinstance(value, str) or not is_web_address(value) or "@" in value:
        help = "write https://..., or env:NAME or file:PATH when the address holds a password"
        raise wrong(Code.BAD_ADDRESS, "must be an http address without a password", help)
    return value


SecretText = Annotated[Any, BeforeValidator(_secret)]
ProtectedAddress = Annotated[str, BeforeValidator(_protected)]
Address = Annotated[Any, BeforeValidator(_address)]


def placed(secret: Secret | None, folder: Path) -> Secret | None:
    """Return `secret` with the path of a file below `folder`."""
    if secret is None or secret.kind != "file":
        return secret
    return replace(secret, name=str(folder / secret.name))
