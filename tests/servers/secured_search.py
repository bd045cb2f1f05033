"""A real Elasticsearch behind TLS with passwords, roles and API keys.

The library for SAML that its security module names is in no registry: classes without content stand for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.class_files import missing, write_stubs
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.jars import jars
from tests.servers.search_home import NEW, SOURCES, SearchHome, compile_java, describe, pack, search_home
from tests.servers.secured import STORE_PASSWORD, made_certificate

ADMIN, PASSWORD = "tests", "correct-horse-9f2"
_GROUP = "org.elasticsearch.plugin"
_CORE, _SECURITY = (_GROUP, "x-pack-core", NEW.number), (_GROUP, "x-pack-security", NEW.number)
_UNPUBLISHED = (
    *((_GROUP, name) for name in ("x-pack-template-resources", "es-opensaml-security-api")),
    *((group, "*") for group in ("org.opensaml", "net.shibboleth", "net.shibboleth.utilities")),
)
_STUBBED = ("org/opensaml/", "net/shibboleth/")
_DOUBLE = ("jcip-annotations-1.0.jar", "jakarta.activation-api-", "listenablefuture-")  # others have their classes too
_SETTINGS = {
    "xpack.security.enabled": "true",
    "xpack.security.autoconfiguration.enabled": "false",
    "xpack.security.transport.ssl.enabled": "false",
    "xpack.security.http.ssl.enabled": "true",
    "xpack.security.http.ssl.keystore.type": "PKCS12",
    "xpack.security.http.ssl.keystore.password": STORE_PASSWORD,
    "xpack.license.self_generated.type": "basic",
}


class SecuredNode(ElasticsearchNode):
    """A node that answers over TLS to whom it knows; `certificate` is the PEM file that clients must trust."""

    def __init__(self, home: SearchHome, folder: Path) -> None:
        store, self.certificate = made_certificate(folder)
        super().__init__(home, folder, {**_SETTINGS, "xpack.security.http.ssl.keystore.path": str(store)})
        self.url = f"https://127.0.0.1:{self.port}"
        credentials = base64.b64encode(f"{ADMIN}:{PASSWORD}".encode()).decode()
        self.headers = {"Authorization": f"Basic {credentials}"}
        self.context = ssl.create_default_context(cafile=str(self.certificate))

    def api_key(self, *indices: Mapping[str, Any], cluster: tuple[str, ...] = ()) -> str:
        """Make an API key with these privileges, as `id:key`."""
        role = {"cluster": list(cluster), "indices": list(indices)}
        made = self.call("POST", "/_security/api_key", {"name": json.dumps(role)[:200], "role_descriptors": {"role": role}})
        return f"{made['id']}:{made['api_key']}"


@contextmanager
def secured_node(folder: Path) -> Iterator[SecuredNode]:
    """Give a running node with its data in `folder`; end it with the block. Raises NoJars."""
    node = SecuredNode(_secured_home(), folder)
    try:
        node.start()
        yield node
    finally:
        node.kill()


def _secured_home() -> SearchHome:
    plain = search_home(NEW)
    home = plain.folder.with_name(f"{NEW.name}-secured")
    if not home.exists():
        core = jars(f"x-pack-core-{NEW.number}", [_CORE], without=_UNPUBLISHED)
        security = jars(f"x-pack-security-{NEW.number}", [_CORE, _SECURITY], without=_UNPUBLISHED)
        with tempfile.TemporaryDirectory(dir=home.parent) as fresh:
            made = Path(fresh) / "home"
            shutil.copytree(plain.folder, made, symlinks=True)
            _add_modules(made, plain.java, core, security)
            (made / "config/users").write_text(f"{ADMIN}:{_hashed(PASSWORD)}\n")
            (made / "config/users_roles").write_text(f"superuser:{ADMIN}\n")
            if not home.exists():
                made.rename(home)
    return SearchHome(NEW, plain.java, home)


def _add_modules(home: Path, java: Path, core: Path, security: Path) -> None:
    modules = home / "modules"
    has = {jar.name for jar in (home / "cp").iterdir()}
    _copy(core, modules / "x-pack-core", has)
    _copy(security, modules / "x-pack-security", has | {jar.name for jar in core.iterdir()})
    described = (("x-pack-core", "core.XPackPlugin", ""), ("x-pack-security", "security.Security", "x-pack-core"))
    for name, plugin, extended in described:
        describe(modules / name, NEW, f"org.elasticsearch.xpack.{plugin}", extended)
    with tempfile.TemporaryDirectory() as work:
        stubs, classes = Path(work) / "stubs", Path(work) / "classes"
        write_stubs(missing(security.iterdir(), _STUBBED), stubs)
        compile_java(java, NEW, stubs, classes, home / "cp")
        pack(classes, classes, modules / "x-pack-security" / "stubs.jar")
        analysis, classes = Path(work) / "analysis", Path(work) / "analysis-classes"
        analysis.mkdir()
        shutil.copy(SOURCES / "AnalysisOfTests.java", analysis)
        compile_java(java, NEW, analysis, classes, home / "cp")
        (modules / "tests-analysis").mkdir()
        pack(classes, classes, modules / "tests-analysis" / "tests-analysis.jar")
    describe(modules / "tests-analysis", NEW, "tests.AnalysisOfTests")


def _copy(jars: Path, module: Path, without: set[str]) -> None:
    module.mkdir()
    for jar in jars.iterdir():
        if jar.name not in without and not jar.name.startswith(_DOUBLE):
            shutil.copy(jar, module)


def _hashed(password: str) -> str:
    """Return a password as the file of users has it."""
    salt = os.urandom(32)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 10_000, 32)
    return f"{{PBKDF2}}10000${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
