"""Where an `hdfs://` path is reached: through WebHDFS, the REST interface of the same namenode.

The clients of HDFS's own protocol for Python cannot create a file on the condition that there is
none. The address of WebHDFS is `dfs.namenode.http-address` in Hadoop's configuration, or a key.

>>> webhdfs_uri("hdfs://namenode:8020/flink/checkpoints", "namenode:9870")
'webhdfs://namenode:9870/flink/checkpoints'
>>> webhdfs_uri("hdfs://ann@namenode/x", "0.0.0.0:9870")
'webhdfs://ann@namenode:9870/x'
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import ConfigurationError

KEY = "penstock.hdfs.http-address"


def webhdfs_uri(uri: str, address: str | None = None, hadoop: str | None = None) -> str:
    """The same path as `webhdfs://`.

    `address` is the namenode's for HTTP; without it, that of `hdfs-site.xml` in the folder
    `hadoop`, or in the one that HADOOP_CONF_DIR names. ConfigurationError if nobody says it.
    """
    parts = urlsplit(uri)
    found = address or _of_site(hadoop or os.environ.get("HADOOP_CONF_DIR"))
    if found is None:
        host = parts.hostname or "namenode"
        raise ConfigurationError(
            f"{uri}: HDFS is reached through WebHDFS: write webhdfs://{host}:9870{parts.path}, "
            f"with the port of dfs.namenode.http-address, or set {KEY} to {host}:9870"
        )
    host, _, port = found.rpartition(":")
    if host in ("", "0.0.0.0"):
        # It listens everywhere, so also where the path says that it is.
        host = parts.hostname or "localhost"
    user = f"{parts.username}@" if parts.username else ""
    return f"webhdfs://{user}{host}:{port}{parts.path}"


def _of_site(folder: str | None) -> str | None:
    if folder is None:
        return None
    # Imported when needed: few jobs have HDFS.
    from xml.etree import ElementTree

    site = Path(folder, "hdfs-site.xml")
    try:
        root = ElementTree.parse(site).getroot()
    except FileNotFoundError:
        return None
    except (OSError, ElementTree.ParseError) as error:
        raise ConfigurationError(f"{site} cannot be read: {error}") from error
    for entry in root.iter("property"):
        if entry.findtext("name") == "dfs.namenode.http-address":
            return (entry.findtext("value") or "").strip() or None
    return None
