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

from tests.servers.jars import Artifact, NoJars, jars

SOURCES = Path(__file__).parent / "java"
COMPILER = ("org.eclipse.jdt", "ecj", "3.44.0")  # a JRE has no javac
_ZSTD = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/opt/homebrew/lib")
_WITHIN_S = 300
_LOG4J = """appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d][%p][%c{1}] %m%n
rootLogger.level=info
rootLogger.appenderRef.c.ref=c
"""


class SearchVersion(Struct, frozen=True):
    """A server and what it is made of.

    `java`: the oldest that runs it. `transport`: the artifact of the module that speaks HTTP, and `plugin` its class. `root`:
    the arguments of what answers at the root; empty where the server itself does. `alone`: jars that no other one names, and
    `sources`: classes that are in none.
    """

    product: str  # as in the names of its packages
    number: str
    java: int
    transport: str
    plugin: str
    main: str = "PlainLaunch"
    root: str = ""
    alone: tuple[Artifact, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in a cache: `elasticsearch-9.5.3`."""
        return f"{self.product}-{self.number}"

    def __str__(self) -> str:
        """Return what people call it: `Elasticsearch 9.5.3`."""
        return f"{'OpenSearch' if self.product == 'opensearch' else 'Elasticsearch'} {self.number}"

    def java_text(self, name: str) -> str:
        """Return a source of SOURCES as this version needs it."""
        text = (SOURCES / name).read_text().replace("/*arguments*/", self.root)
        text = text if self is NEW else text.replace("/*9*/, false/**/", "")
        return text.replace("org.elasticsearch", f"org.{self.product}")


NEW = SearchVersion(
    "elasticsearch",
    "9.5.3",
    21,
    "transport-netty4",
    "netty4.Netty4Plugin",
    "Launch",
    "RestHandlersServices services, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features",
)
OLD = SearchVersion(
    "elasticsearch",
    "8.19.4",
    17,
    "transport-netty4",
    "netty4.Netty4Plugin",
    "Launch",
    "Settings settings, NamedWriteableRegistry registry, RestController controller, ClusterSettings clusterSettings,"
    " IndexScopedSettings indexSettings, SettingsFilter filter, IndexNameExpressionResolver resolver,"
    " Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features",
)
OLDEST = SearchVersion("elasticsearch", "7.17.29", 17, "transport-netty4-client", "Netty4Plugin")
_LOG4J_CORE = ("org.apache.logging.log4j", "log4j-core")
OPENSEARCH = SearchVersion(
    "opensearch",
    "3.9.0",
    21,
    "transport-netty4-client",
    "Netty4ModulePlugin",
    alone=((*_LOG4J_CORE, "2.25.5"), ("org.opensearch", "opensearch-plugin-classloader", "3.9.0")),
)
OLD_OPENSEARCH = SearchVersion(
    "opensearch",
    "2.19.4",
    17,
    "transport-netty4-client",
    "Netty4Plugin",
    alone=((*_LOG4J_CORE, "2.21.0"),),
    sources=("ExtendedPluginsClassLoader.java",),
)


class SearchHome(Struct, frozen=True):
    """A node's home, which nodes only read, and the Java that runs it."""

    version: SearchVersion
    java: Path
    folder: Path

    @property
    def has_zstd(self) -> bool:
        """Whether the system's zstd was there when the home was made: without it no index has the mode logsdb."""
        return any((self.folder / "native").iterdir())


def search_home(version: SearchVersion | None = None) -> SearchHome:
    """Return the home of `version`, by default of the newest Elasticsearch that a Java of this machine runs. Raises NoJars."""
    javas = dict(_javas())
    newest = max(javas.values(), default=0)
    chosen = version or (NEW if newest >= NEW.java else OLD)
    fitting = [java for java, major in sorted(javas.items(), key=lambda item: item[1]) if major >= chosen.java]
    if not fitting:
        raise NoJars(f"{chosen} needs Java {chosen.java} or newer; here is {newest or 'none'}")
    group = f"org.{chosen.product}"
    artifacts = [(group, chosen.product, chosen.number), (f"{group}.plugin", chosen.transport, chosen.number)]
    fetched = jars(f"{chosen.product}-jars-{chosen.number}", artifacts, chosen.alone)
    home = fetched.with_name(chosen.name)
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=home.parent) as fresh:
            _make(Path(fresh) / "home", fetched, chosen, fitting[0])
            if not home.exists():
                (Path(fresh) / "home").rename(home)
    return SearchHome(chosen, fitting[0], home)


def _make(home: Path, fetched: Path, version: SearchVersion, java: Path) -> None:
    for name in ("config", "plugins", "native", "cp", "modules/transport-netty4"):
        (home / name).mkdir(parents=True)
    for jar in fetched.iterdir():  # a module's jars must not be on the class path too
        is_module = jar.name.startswith(("netty-", "transport-netty4-", "opensearch-netty4-"))
        shutil.copy(jar, home / ("modules/transport-netty4" if is_module else "cp"))
    _compile(home, version, java)
    describe(home / "modules/transport-netty4", version, f"org.{version.product}.transport.{version.plugin}")
    if version.root:
        describe(home / "modules/tests-root", version, "tests.RootPlugin")
    (home / "config/log4j2.properties").write_text(_LOG4J)
    for folder in _ZSTD:
        for library in sorted(Path(folder).glob("libzstd.so.1")) or sorted(Path(folder).glob("libzstd.dylib")):
            (home / "native" / library.name.removesuffix(".1")).symlink_to(library)
            return


def _compile(home: Path, version: SearchVersion, java: Path) -> None:
    sources, classes = home / "sources", home / "classes"
    sources.mkdir()
    for name in (f"{version.main}.java", *version.sources, *(("RootPlugin.java",) if version.root else ())):
        (sources / name).write_text(version.java_text(name))
    compile_java(java, version, sources, classes, home / "cp")
    if version.root:
        (home / "modules/tests-root").mkdir()
        pack(classes / "tests", classes, home / "modules/tests-root/tests-root.jar")
        shutil.rmtree(classes / "tests")


def compile_java(java: Path, version: SearchVersion, sources: Path, classes: Path, libraries: Path) -> None:
    """Compile all Java of a folder for the Java of a version."""
    compiler = next(jars(f"{COMPILER[1]}-{COMPILER[2]}", [COMPILER]).iterdir())
    command = [str(java), "-jar", str(compiler), f"-{version.java}", "-nowarn", "-proc:none", "-d", str(classes)]
    classpath = ":".join(str(jar) for jar in sorted(libraries.iterdir()))
    _run([*command, "-cp", classpath, str(sources)])


def pack(folder: Path, root: Path, jar: Path) -> None:
    """Put the classes below `folder` into a jar, under their paths from `root` on."""
    with zipfile.ZipFile(jar, "w") as archive:
        for compiled in sorted(folder.rglob("*.class")):
            archive.write(compiled, compiled.relative_to(root))


def describe(module: Path, version: SearchVersion, plugin: str, extended: str = "") -> None:
    """Write what a server wants to know of a module: `extended` is the name of the one that it adds to."""
    java = "1.8" if version is OLDEST else str(version.java)
    fields = {"name": module.name, "description": module.name, "version": version.number, "java.version": java}
    lines = {**fields, f"{version.product}.version": version.number, "classname": plugin, "extended.plugins": extended}
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
