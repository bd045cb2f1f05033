"""The bounded input of a scan: the files one after the other, with a progress bar on a terminal. A file that cannot be read is
noted and does not end the scan."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from msgspec.structs import replace

from connectors.files import STDIN, Unpacking, container_labels, find, read_chunks, same_content
from engine.errors import SourceError
from engine.model.records import NEAR_LABEL, SPEAKS_FOR, Labels, Progress, RawLine
from engine.parse.stamps import printed_day
from engine.ports import Chunk

_RECORD = re.compile(
    rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (?:(?P<broker>Cluster ID: \S+$)|(?P<connect>\{"version":"[^"]*","commit":))',
    re.MULTILINE,
)
BAR_FROM_BYTES = 5_000_000  # smaller input is read before a bar could be seen

MOST_HELD_BYTES = 64 << 20  # of standard input
_HEAD_BYTES = 64 << 10  # in which a day with its year is looked for

Advance = Callable[[int], None]  # takes the number of bytes read so far


class Intake:
    """The files of a scan, read one after the other. The log of a container has the labels that its runtime gives.

    Attributes:
        notes: sentences for the report; complete once `chunks` is exhausted.
        refused: the notes about requested files that could not be read; complete once `chunks` is exhausted.
    """

    def __init__(self, paths: Sequence[str], labels: Labels) -> None:
        search = find(paths, posts=True)
        self._folder: Path | None = None
        unpacking = Unpacking(self._private_folder)
        staged = [file for path in search.files for file in unpacking.files(path)]
        self._names = {file.path: file.name for file in staged}
        duplicates = same_content(self._names)
        self._labels = labels
        self._stdin: list[Chunk | Progress] | None = None  # what standard input held, unless that was too much
        self._files = [path for path in self._names if path not in duplicates]
        self.refused = [str(error) for error in (*search.errors, *unpacking.errors)]
        copies = ((self._names[path], self._names[first]) for path, first in duplicates.items())
        repeated = (f"{name}: same content as {first}; read once" for name, first in copies)
        self.notes = [*self.refused, *unpacking.notes, *repeated]
        self._refused, self._notes = tuple(self.refused), tuple(self.notes)
        self._is_reading, self._stopped = False, threading.Event()

    def chunks(self) -> Iterator[Chunk | Progress]:
        """Yield the chunks and progress of every file that can be read, in the order of the arguments."""
        self.refused[:], self.notes[:] = self._refused, self._notes
        sizes = {path: _size(path) for path in self._files}
        bytes_before = 0
        with _progress_bar(sum(sizes.values())) as advance:
            for path in self._files:
                yield from self._until_stopped(_advancing(self._file(path), advance, bytes_before, sizes[path]))
                bytes_before += sizes[path]

    def chunks_from(self, sources: Container[str]) -> Iterator[Chunk]:
        """Yield once more the chunks of the files that are these sources; what cannot be read is left out."""
        for path in self._files:
            with suppress(SourceError):
                for item in self._chunks_of(path):
                    if item.source_id not in sources:
                        break
                    if isinstance(item, Chunk):
                        yield item

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called: what was not read by then is left out."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End the input here; for a handler of a signal. Raises KeyboardInterrupt where a read may wait, which ends it."""
        self._stopped.set()
        if self._is_reading:
            raise KeyboardInterrupt

    def _until_stopped(self, items: Iterator[Chunk | Progress]) -> Iterator[Chunk | Progress]:
        while not self._stopped.is_set():
            try:
                self._is_reading = True
                item = next(items, None)
                self._is_reading = False
            except KeyboardInterrupt:
                self._is_reading = False
                if not self._stopped.is_set():
                    raise
                return
            if item is None:
                return
            yield item

    def lines(self) -> Iterator[RawLine | Progress]:
        """Yield the same input line by line."""
        for item in self.chunks():
            yield from item.lines() if isinstance(item, Chunk) else (item,)

    def _private_folder(self) -> Path:
        """Return the folder for what is unpacked; it is removed with this object, at the latest when the process ends."""
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="tocsin-"))
            finalize(self, rmtree, self._folder, ignore_errors=True)
        return self._folder

    @property
    def repeatable(self) -> bool:
        """Whether `chunks` gives the same input once more: standard input is held for that up to MOST_HELD_BYTES."""
        return STDIN not in self._files or self._stdin is not None

    def _chunks_of(self, path: str) -> Iterator[Chunk | Progress]:
        if (name := self._names[path]) != path:
            yield from (replace(item, source_id=name.replace("#", "%23")) for item in read_chunks(path, self._labels))
        elif path != STDIN:
            yield from read_chunks(path, {**container_labels(path), **_record_labels(path), **self._labels})
        elif self._stdin is not None:
            yield from self._stdin
        else:
            yield from self._read_stdin()

    def _read_stdin(self) -> Iterator[Chunk | Progress]:
        held, size = list[Chunk | Progress](), 0
        for item in read_chunks(STDIN, self._labels):
            size += len(item.data) if isinstance(item, Chunk) else 0
            if size <= MOST_HELD_BYTES:
                held.append(item)
            else:
                held.clear()
            yield item
        self._stdin = held if size <= MOST_HELD_BYTES else None

    def _file(self, path: str) -> Iterator[Chunk | Progress]:
        empty = True
        try:
            for item in _with_day(self._chunks_of(path)):
                empty = empty and isinstance(item, Progress)
                yield item
        except SourceError as error:
            sentence = str(error).replace(path, self._names[path])
            self.refused.append(sentence)
            self.notes.append(sentence)
            return
        if empty:
            self.notes.append(f"{self._names[path]}: is empty")


def _with_day(items: Iterator[Chunk | Progress]) -> Iterator[Chunk | Progress]:
    """Yield the items of one file; where it has lines with a year and lines without, its chunks name a day of the former."""
    day: str | None = None
    for item in items:
        if isinstance(item, Chunk):
            day = printed_day(item.data[:_HEAD_BYTES]) if day is None and item.data else day
            yield replace(item, labels={NEAR_LABEL: day, **item.labels}) if day else item
        else:
            yield item


def _advancing(items: Iterator[Chunk | Progress], advance: Advance, bytes_before: int, size: int) -> Iterator[Chunk | Progress]:
    for item in items:
        if isinstance(item, Chunk):
            advance(bytes_before + min(item.offset, size))  # offsets count uncompressed bytes
        yield item


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # reading it reports the error
        return 0


@contextmanager
def _progress_bar(total_bytes: int) -> Iterator[Advance]:
    if total_bytes < BAR_FROM_BYTES or not sys.stderr.isatty():
        yield lambda bytes_read: None
        return
    from rich.console import Console  # noqa: PLC0415  (loaded only where a bar is shown)
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading", total=total_bytes)
        yield lambda bytes_read: bar.update(task, completed=bytes_read)


def _record_labels(path: str) -> Labels:
    """Return the labels of a record of what a server was asked, which begins with an answer: it speaks for that server, as it
    did in the run that wrote it. Other files have none."""
    try:
        if not Path(path).is_file():  # what a pipe gives is read once
            return {}
        with Path(path).open("rb") as file:
            first = _RECORD.match(file.readline(300))
    except OSError:  # it is reported when it is read
        return {}
    return {SPEAKS_FOR: first.lastgroup or ""} if first is not None else {}
