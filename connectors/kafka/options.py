"""The `options` of a Kafka source. They are passed to librdkafka, except for those that the source itself sets.

Passwords and keys are not written into a configuration: it refers to them as `env:NAME` or `file:PATH`. They are read where the
connection is made, so no offset, log or error of ours contains them. Names: librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from engine.errors import SourceError

SECRETS = frozenset(
    (
        "sasl.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    )
)
OURS: Mapping[str, str] = {
    "auto.offset.reset": "a lost range is reported, not skipped",
    "bootstrap.servers": "write bootstrap_servers",
    "enable.auto.commit": "the job's checkpoint keeps the offsets",
    "enable.auto.offset.store": "the job's checkpoint keeps the offsets",
    "enable.partition.eof": "the reader needs to know where a partition ends",
    "isolation.level": "lines of aborted transactions must not be read",
    "metadata.broker.list": "write bootstrap_servers",
}

_ENV, _FILE = "env:", "file:"


def check_option(name: str, value: str) -> str | None:
    """Return an error text for an option; None when it is allowed. Whether librdkafka accepts it shows when it connects."""
    if name in OURS:
        return f"`{name}` cannot be set here: {OURS[name]}"
    if name in SECRETS and not value.startswith((_ENV, _FILE)):
        return f"`{name}` is a secret: write where it is stored, as env:NAME or file:PATH"
    return None


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` with the secret in place of every reference. Raises SourceError when there is none."""
    return {name: _value(name, value) for name, value in options.items()}


def _value(name: str, value: str) -> str:
    if value.startswith(_ENV):
        variable = value.removeprefix(_ENV)
        if variable not in os.environ:
            raise SourceError(f"the option {name} names the environment variable {variable}, which is not set")
        return os.environ[variable]
    if value.startswith(_FILE):
        try:
            return Path(value.removeprefix(_FILE)).read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"the option {name} names a file that cannot be read: {error}") from None
    return value
