"""HDFS, through its own REST interface: `webhdfs://namenode:9870/path`.

A file is created under another name and renamed, which the namenode refuses if the name is taken:
so it is there whole or not at all, and of two writers one wins.
"""

from __future__ import annotations

import contextlib
import uuid

from penstock.common.filesystem import Content, parts_of
from penstock.common.fsspec_filesystem import FsspecFileSystem


class WebHdfsFileSystem(FsspecFileSystem):
    """The `webhdfs` of fsspec, with the promises of `penstock.common.filesystem.FileSystem`."""

    def create(self, path: str, content: Content) -> bool:
        # What a writer that died left behind does not look like anything that is read.
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        with self._errors("create", path):
            try:
                with self._fs.open(self._root + temporary, "wb") as file:
                    for part in parts_of(content):
                        file.write(part)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._fs.rm(self._root + temporary)
                raise
            if self._renamed(temporary, path):
                return True
            self._fs.rm(self._root + temporary)
            if self._fs.info(self._root + path)["type"] == "file":
                return False
            raise FileExistsError("there is a directory of that name")

    def rename(self, source: str, target: str) -> None:
        with self._errors("rename", source):
            self._fs.makedirs(self._root + target.rpartition("/")[0], exist_ok=True)
            self._fs.info(self._root + source)
            if not self._renamed(source, target):
                raise FileExistsError(f"the namenode refused the name {self._shown(target)}")

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            self._fs.rm(self._root + path)

    def _renamed(self, source: str, target: str) -> bool:
        """Whether the namenode did it. The client's own `mv` does not tell."""
        names = {"path": self._root + source, "destination": self._root + target}
        answer = self._fs._call("RENAME", method="put", **names)
        return bool(answer.json()["boolean"])
