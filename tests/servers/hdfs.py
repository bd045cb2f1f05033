"""HDFS on loopback: a NameNode and a DataNode, on free ports and in a folder of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.broker import free_ports
from tests.servers.ending import kill
from tests.servers.hadoop import daemon, hadoop_jars, java, metric, write_settings
from tests.servers.spark_cluster import until

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Give the URL of a running HDFS; end it with the block. Raises NoJars."""
    libs = hadoop_jars()
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
    write_settings(folder, "core-site.xml", {"fs.defaultFS": url})
    write_settings(folder, "hdfs-site.xml", settings)
    format_it = [*java(folder, libs), _NAME_NODE, "-format", "-nonInteractive"]
    formatted = subprocess.run(format_it, capture_output=True, text=True, check=False)
    assert formatted.returncode == 0, formatted.stderr[-2000:]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for kind in (_NAME_NODE, _DATA_NODE):
            processes.append(daemon(folder, libs, kind))
        until(lambda: metric(pages, "NameNode", "FSNamesystemState", "NumLiveDataNodes") == 1, "HDFS")
        yield url
    finally:
        for process in processes:
            kill(process)
