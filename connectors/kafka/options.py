"""The `options` of a Kafka source: passed on to librdkafka, but for what the source itself decides.

Passwords and keys are never written into a configuration: they are named as `env:NAME` or `file:PATH` and looked up where the
connection is made, so they are in no offset, log or error of ours. Names: librdkafka's CONFIGURATION.md.
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
    "isolation.level": "lines of aborted transactions were never said",
    "metadata.broker.list": "write bootstrap_servers",
}

_ENV, _FILE = "env:", "file:"


def check_option(name: str, value: str) -> str | None:
    """Return what is wrong with an option; None when nothing is. What librdkafka says of it is known when it connects."""
    if name in OURS:
        return f"`{name}` is not yours to set: {OURS[name]}"
    if name in SECRETS and not value.startswith((_ENV, _FILE)):
        return f"`{name}` is a secret: name where it is, as env:NAME or file:PATH"
    return None


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` with every reference replaced by what it names. Raises SourceError when that is not there."""
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
