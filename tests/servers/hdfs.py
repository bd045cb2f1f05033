"""HDFS on loopback: a NameNode and a DataNode, on free ports and in a folder of their own."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.broker import free_ports
from tests.servers.ending import kill
from tests.servers.jars import jars
from tests.servers.spark_cluster import until

HADOOP = ("org.apache.hadoop", "hadoop-minicluster", "3.5.0")  # the version inside pyspark; it brings the daemons
_SITE = "<configuration>{}</configuration>"
_PROPERTY = "<property><name>{}</name><value>{}</value></property>"
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_LIVE = "qry=Hadoop:service=NameNode,name=FSNamesystemState"


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Give the URL of a running HDFS; end it with the block. Raises NoJars."""
    libs = jars(f"hadoop-minicluster-{HADOOP[2]}", [HADOOP])
    folder.mkdir(parents=True)
    name, pages, data, data_pages, ipc = free_ports(5)
    url = f"hdfs://127.0.0.1:{name}"
    settings = {
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.name.dir": f"file://{folder}/name",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.namenode.http-address": f"127.0.0.1:{pages}",
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.http.address": f"127.0.0.1:{data_pages}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
        "dfs.datanode.hostname": "127.0.0.1",
    }
    (folder / "core-site.xml").write_text(_SITE.format(_PROPERTY.format("fs.defaultFS", url)))
    (folder / "hdfs-site.xml").write_text(_SITE.format("".join(_PROPERTY.format(*each) for each in settings.items())))
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{libs}/*"]
    formatted = subprocess.run([*java, _NAME_NODE, "-format", "-nonInteractive"], capture_output=True, text=True, check=False)
    assert formatted.returncode == 0, formatted.stderr[-2000:]
    processes = []
    try:
        for kind in (_NAME_NODE, _DATA_NODE):
            with (folder / f"{kind.rpartition('.')[2]}.log").open("wb") as log:
                processes.append(subprocess.Popen([*java, kind], stdout=log, stderr=log))
        until(lambda: _data_nodes(pages) == 1, "HDFS")
        yield url
    finally:
        for process in processes:
            kill(process)


def _data_nodes(pages: int) -> int:
    """Return how many DataNodes the NameNode has; 0 while it does not answer."""
    with suppress(OSError, LookupError), urllib.request.urlopen(f"http://127.0.0.1:{pages}/jmx?{_LIVE}", timeout=5) as answer:
        return int(json.load(answer)["beans"][0]["NumLiveDataNodes"])
    return 0
