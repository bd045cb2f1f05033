"""The home of an Elasticsearch node, made of the jars in Maven's repository: no registry has the whole server.

What is not there is not in tests either: scripts, ILM, SQL, ES|QL, reindexing and the like. Compiled and put together once, and
kept in the user's cache.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tests.servers.jars import NoJars, jars

SOURCES = Path(__file__).parent / "java"
COMPILER = ("org.eclipse.jdt", "ecj", "3.44.0")  # a JRE has no javac
NEW, OLD = "9.5.3", "8.19.4"
_NEEDS = {NEW: 21, OLD: 17}  # version: the oldest Java that runs it
_ZSTD = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/opt/homebrew/lib")
_WITHIN_S = 300
_LOG4J = """appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d][%p][%c{1}] %m%n
rootLogger.level=info
rootLogger.appenderRef.c.ref=c
"""
_ARGUMENTS = {
    NEW: "RestHandlersServices services, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features",
    OLD: "Settings settings, NamedWriteableRegistry registry, RestController controller, ClusterSettings clusterSettings,"
    " IndexScopedSettings indexSettings, SettingsFilter filter, IndexNameExpressionResolver resolver,"
    " Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features",
}


class SearchHome(Struct, frozen=True):
    """A node's home, which nodes only read, and the Java that runs it."""

    version: str
    java: Path
    folder: Path

    @property
    def has_zstd(self) -> bool:
        """Whether the system's zstd was there when the home was made: without it no index has the mode logsdb."""
        return any((self.folder / "native").iterdir())


def search_home(version: str = "") -> SearchHome:
    """Return the home of `version`, of the newest that a Java of this machine runs when empty. Raises NoJars."""
    javas = dict(_javas())
    newest = max(javas.values(), default=0)
    chosen = version or (NEW if newest >= _NEEDS[NEW] else OLD)
    fitting = [java for java, major in sorted(javas.items(), key=lambda item: item[1]) if major >= _NEEDS[chosen]]
    if not fitting:
        raise NoJars(f"Elasticsearch {chosen} needs Java {_NEEDS[chosen]} or newer; here is {newest or 'none'}")
    artifacts = [
        ("org.elasticsearch", "elasticsearch", chosen),
        ("org.elasticsearch.plugin", "transport-netty4", chosen),
    ]
    fetched = jars(f"elasticsearch-jars-{chosen}", artifacts)
    home = fetched.with_name(f"elasticsearch-{chosen}")
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=home.parent) as fresh:
            _make(Path(fresh) / "home", fetched, chosen, fitting[0])
            if not home.exists():
                (Path(fresh) / "home").rename(home)
    return SearchHome(chosen, fitting[0], home)


def _make(home: Path, fetched: Path, version: str, java: Path) -> None:
    for name in ("config", "plugins", "native", "cp", "modules/transport-netty4", "modules/tests-root"):
        (home / name).mkdir(parents=True)
    for jar in fetched.iterdir():  # a module's jars must not be on the class path too
        is_module = jar.name.startswith(("netty-", "transport-netty4-"))
        shutil.copy(jar, home / ("modules/transport-netty4" if is_module else "cp"))
    _compile(home, version, java)
    _describe(home / "modules/transport-netty4", version, "org.elasticsearch.transport.netty4.Netty4Plugin")
    _describe(home / "modules/tests-root", version, "tests.RootPlugin")
    (home / "config/log4j2.properties").write_text(_LOG4J)
    for folder in _ZSTD:
        for library in sorted(Path(folder).glob("libzstd.so.1")) or sorted(Path(folder).glob("libzstd.dylib")):
            (home / "native" / library.name.removesuffix(".1")).symlink_to(library)
            return


def _compile(home: Path, version: str, java: Path) -> None:
    compiler = next(jars(f"{COMPILER[1]}-{COMPILER[2]}", [COMPILER]).iterdir())
    texts = {name: (SOURCES / name).read_text() for name in ("Launch.java", "RootPlugin.java")}
    if version == OLD:
        texts["Launch.java"] = texts["Launch.java"].replace("/*9*/, false/**/", "")
    texts["RootPlugin.java"] = texts["RootPlugin.java"].replace("/*arguments*/", _ARGUMENTS[version])
    sources, classes = home / "sources", home / "classes"
    sources.mkdir()
    for name, text in texts.items():
        (sources / name).write_text(text)
    level = f"-{_NEEDS[version]}"
    command = [str(java), "-jar", str(compiler), level, "-nowarn", "-proc:none", "-d", str(classes)]
    classpath = ":".join(str(jar) for jar in sorted((home / "cp").iterdir()))
    _run([*command, "-cp", classpath, str(sources)])
    with zipfile.ZipFile(home / "modules/tests-root/tests-root.jar", "w") as jar:
        for compiled in sorted((classes / "tests").iterdir()):
            jar.write(compiled, f"tests/{compiled.name}")
    shutil.rmtree(classes / "tests")


def _describe(module: Path, version: str, plugin: str) -> None:
    fields = {"name": module.name, "description": module.name, "version": version, "elasticsearch.version": version}
    lines = {**fields, "java.version": str(_NEEDS[version]), "classname": plugin}
    (module / "plugin-descriptor.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))


def _javas() -> Iterator[tuple[Path, int]]:
    """Yield the Java programs of this machine with their major versions."""
    homes = [Path(value) for name, value in os.environ.items() if name.startswith("JAVA_HOME")]
    homes += [*Path("/usr/lib/jvm").glob("*"), *Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home")]
    homes += Path.home().glob(".sdkman/candidates/java/*")
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parents[1])
    for home in homes:
        release, java = home / "release", home / "bin" / "java"
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.is_file() and java.is_file() else None
        if version:
            yield java, int(version[1])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    if done.returncode:
        raise NoJars(f"{Path(command[0]).name} failed: {(done.stdout + done.stderr).strip()[-1000:]}")
