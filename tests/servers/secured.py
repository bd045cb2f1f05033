"""A real broker behind passwords and TLS: one listener of each kind, and a certificate that nobody trusts by themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.servers.broker import Broker, Doors, brokers, free_ports

USER, PASSWORD = "tocsin", "correct-horse-9f2"
_KINDS = ("SASL_PLAINTEXT", "SSL", "SASL_SSL")
STORE_PASSWORD = "of-the-test"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SETTINGS = """
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config={plain} required user_{user}="{password}";
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} required user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;
ssl.keystore.location={store}
ssl.keystore.type=PKCS12
ssl.keystore.password={store_password}
"""


class Secured(Struct, frozen=True):
    """A broker and the address of each of its doors; `certificate` is the PEM file that clients must trust."""

    broker: Broker
    addresses: Mapping[str, str]
    certificate: Path


@contextmanager
def secured(jars: Path, folder: Path) -> Iterator[Secured]:
    """Give a running broker that also listens with SASL (PLAIN and SCRAM-SHA-512) and with TLS; end it with the block."""
    store, certificate = made_certificate(folder)
    doors = secured_doors(store)
    with brokers(jars, folder, doors=doors) as (running,):
        yield Secured(running, {kind: f"127.0.0.1:{port}" for kind, port in doors.ports.items()}, certificate)


def secured_doors(store: Path) -> Doors:
    """Return a door of each kind, on free ports, for the user of the tests and with the key of `store`."""
    ports = dict(zip(_KINDS, free_ports(len(_KINDS)), strict=True))
    said = {"plain": _PLAIN, "scram": _SCRAM, "user": USER, "password": PASSWORD}
    settings = _SETTINGS.format(**said, store=store, store_password=STORE_PASSWORD)
    return Doors(ports, settings, (f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]",))


def made_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a key with a certificate of its own for 127.0.0.1; return the key store and the certificate as PEM."""
    store, certificate = folder / "broker.p12", folder / "ca.pem"
    access = ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", "broker"]
    pair = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1", "-validity", "30"]
    for command in (["keytool", *pair, *access], ["keytool", "-exportcert", "-rfc", "-file", str(certificate), *access]):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return store, certificate
