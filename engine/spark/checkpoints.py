"""The files of a checkpoint: in a folder of this machine, or in any file system that Hadoop knows (`hdfs:`, `s3a:`)."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from engine.errors import TocsinError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class CheckpointFiles(Protocol):
    """The files below one place. `location` is its name for Spark and for people; names of files are relative to it.

    Raises TocsinError or OSError when the place cannot be reached.
    """

    @property
    def location(self) -> str:
        """The path or URL of the place."""

    @property
    def is_local(self) -> bool:
        """Whether a look at a file costs next to nothing."""

    def within(self, folder: str) -> CheckpointFiles:
        """Return the files below `folder`."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of what is in `folder`, in any order; empty when there is no such folder."""

    def text(self, name: str) -> str | None:
        """Return the content of a file; None when there is none."""

    def write(self, name: str, text: str) -> None:
        """Write a file, which replaces an earlier one."""

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it; does nothing when there is none."""


class LocalCheckpoint(Struct, frozen=True):
    """A checkpoint in `folder`."""

    folder: Path
    is_local: bool = True

    @property
    def location(self) -> str:
        """The path of the folder."""
        return str(self.folder)

    def within(self, folder: str) -> LocalCheckpoint:
        """Return the files below `folder`."""
        return LocalCheckpoint(self.folder / folder)

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of what is in `folder`."""
        path = self.folder / folder
        return [entry.name for entry in path.iterdir()] if path.exists() else []

    def text(self, name: str) -> str | None:
        """Return the content of a file; None when there is none."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, text: str) -> None:
        """Write a file atomically."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)

    def remove(self, name: str) -> None:
        """Remove a file or folder."""
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class HadoopCheckpoint:
    """A checkpoint at the URL `location`, read and written by the driver's JVM."""

    is_local = False

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location.rstrip("/")
        self._spark = spark
        self._jvm: Any = spark.sparkContext._jvm

    def within(self, folder: str) -> HadoopCheckpoint:
        """Return the files below `folder`."""
        return HadoopCheckpoint(self._spark, f"{self.location}/{folder}")

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of what is in `folder`."""
        return self._answer(lambda files, path: [status.getPath().getName() for status in files.listStatus(path)], folder) or []

    def text(self, name: str) -> str | None:
        """Return the content of a file; None when there is none."""
        return self._answer(self._read, name)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        self._answer(lambda files, path: self._written(files, path, text), name)

    def remove(self, name: str) -> None:
        """Remove a file or folder."""
        self._answer(lambda files, path: files.delete(path, True), name)

    def _read(self, files: Any, path: Any) -> str:
        stream = files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _written(self, files: Any, path: Any, text: str) -> None:
        stream = files.create(path, True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def _answer(self, request: Callable[[Any, Any], T], name: str) -> T | None:
        """Return the result of `request` on Hadoop's file system and path; None when the file does not exist.

        Raises TocsinError, with the reason, when the file system does not answer.
        """
        from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415  (comes with pyspark)

        try:
            path = self._jvm.org.apache.hadoop.fs.Path(f"{self.location}/{name}")
            files = path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration())
            return request(files, path)
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getName()) == "java.io.FileNotFoundException":
                return None
            why = str(error.java_exception.toString()).partition("\n")[0]
            raise TocsinError(f"the checkpoint {self.location} cannot be reached: {why} (docs/cluster.md)") from error
        except (Py4JError, OSError) as error:
            raise TocsinError(f"the checkpoint {self.location} cannot be reached: Java has ended ({error})") from error


class SharedMark(Struct, frozen=True):
    """A file in a checkpoint that executors must see too: else each would keep its part of the state on a disk of its own,
    without any error until that disk is lost."""

    path: str

    def check(self) -> None:
        """Raise TocsinError, with the name of this machine, when it does not see the file. Looks once in each process."""
        if (why := _unseen(self.path)) is not None:
            folder = Path(self.path).parent
            raise TocsinError(
                f"the checkpoint {folder} is not shared: executor {gethostname()} does not see what the driver writes there"
                f" ({why}); mount the same folder on all machines, or set spark.checkpoint to one in hdfs: or s3a:"
            )


def marked(folder: Path) -> SharedMark:
    """Write a new mark into `folder` in place of earlier ones. Its name is new, so that no cache of a network file system
    knows it. Raises OSError."""
    for earlier in folder.glob("shared-*"):
        with suppress(OSError):
            earlier.unlink()
    mark = folder / f"shared-{secrets.token_hex(8)}"
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return SharedMark(str(mark))


@lru_cache(maxsize=4)
def _unseen(path: str) -> str | None:
    """Return why a file cannot be seen; None when it can."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.strerror or str(error)
    return None
