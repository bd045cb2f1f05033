"""The disk at one look: the files that were asked for, and those near them, since a rotated file may be there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from connectors.files.contents import Contents, FileState, inode_of
from connectors.files.finding import FileListing
from connectors.files.opening import irregular, refused
from connectors.files.positions import Cursor
from connectors.files.rotation import is_rotated
from engine.errors import SourceError, SourceMissing
from engine.model.visible import visible

SETTLED_S = 10.0  # a damaged archive or a last line without a line end that changed less long ago may still be written
RESTED_S = 2.0  # after this time without a change, another one shows in the modification time
QUIET_S = 30.0  # a file that nobody wrote to for so long got no more lines before it was removed


class Watch:
    """Measures for how long files have been unchanged, as far as this process has observed. Clocks are not trusted to run
    evenly: the wall clock may only make a file look older.

    Args:
        clock: monotonic, in seconds.
        wall: seconds since 1970.
        final: the input is bounded: every file counts as settled at once.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float], final: bool) -> None:
        self._clock, self._wall, self._final = clock, wall, final
        self._since: dict[str, tuple[tuple[int, int], float]] = {}
        self._now = clock()
        self._before = self._now

    def begin(self) -> None:
        """Begin a look."""
        self._before, self._now = self._now, self._clock()

    def observe(self, state: FileState) -> None:
        """Note the size and modification time of a file at this look."""
        key = state.bytes, state.changed_ns
        if self._since.get(state.inode, (None, 0.0))[0] != key:
            self._since[state.inode] = key, self._now

    def retain(self, inodes: set[str]) -> None:
        """Drop all files but these."""
        self._since = {inode: observation for inode, observation in self._since.items() if inode in inodes}

    @property
    def inodes(self) -> set[str]:
        """The inodes of the files that were observed."""
        return set(self._since)

    def rests(self, state: FileState) -> bool:
        """Return whether a file has been unchanged for RESTED_S, so that another change shows in its modification time."""
        return self._unchanged_s(state) >= RESTED_S

    def is_settled(self, state: FileState) -> bool:
        """Return whether a file is no longer being written: it has been unchanged for SETTLED_S, or the input is bounded."""
        return self._final or self._unchanged_s(state) >= SETTLED_S

    def looks_settled(self, state: FileState) -> bool:
        """Return whether a file is settled, also by its modification time: it may be older than this process."""
        return self.is_settled(state) or self._wall() - state.changed >= SETTLED_S

    def was_quiet(self, inode: str) -> bool:
        """Return whether a file that is gone now had been unchanged for QUIET_S at the look before."""
        return inode in self._since and self._before - self._since[inode][1] >= QUIET_S

    def is_quiet(self, inode: str) -> bool:
        """Return whether a file that still exists has been unchanged for QUIET_S."""
        return inode in self._since and self._now - self._since[inode][1] >= QUIET_S

    def _unchanged_s(self, state: FileState) -> float:
        return self._now - self._since.get(state.inode, (None, self._now))[1]


class Look:
    """One look at the disk.

    Args:
        listing: the files that were asked for.
        limits: by inode, how many bytes of a file may be read when the input is bounded; other files are left out then. None:
            the input is not bounded.

    Attributes:
        wanted: the files that were asked for, by path.
        unreadable: why files and folders cannot be read, by name.
    """

    def __init__(self, listing: FileListing, contents: Contents, watch: Watch, limits: Mapping[str, int] | None) -> None:
        self.contents, self.watch = contents, watch
        self._limits = limits
        self._folders: dict[str, Sequence[FileState]] = {}
        self._by_inode: dict[str, FileState] = {}
        self.unreadable: dict[str, SourceError] = {}
        self.wanted: dict[str, FileState] = {}
        for error in listing.errors:
            self.refuse(str(error).partition(": ")[0], error)
        for path in listing.files:
            try:
                refuse_undecodable(path)
                self.wanted[path] = self._state(path)
            except SourceError as error:
                self.refuse(path, error)
        if limits is not None:
            self.wanted = {path: state for path, state in self.wanted.items() if state.inode in limits}

    def bound(self, limits: Mapping[str, int]) -> None:
        """Set `limits` afterwards: for input that this look itself bounds."""
        self._limits = limits

    def refuse(self, name: str, error: SourceError) -> None:
        """Add `name` to the unreadable ones, unless it does not exist."""
        if not isinstance(error, SourceMissing):
            self.unreadable[visible(name)] = error

    def locate(self, cursor: Cursor, home: str) -> FileState | None:
        """Return the file with the inode of `cursor`: at its path, at `home` or near one of them; None when there is none.
        Raises SourceError when that cannot be determined, because a folder or file cannot be read."""
        for path in (cursor.path, home):
            if cursor.inode not in self._by_inode:
                self._peek(path)
        if cursor.inode not in self._by_inode:
            self.neighbours(home, cursor.path)
        return self._by_inode.get(cursor.inode)

    def neighbours(self, home: str, path: str) -> Sequence[FileState]:
        """Return the files in the folders of a stream's home and of the path of one of its files."""
        return [state for folder in folders_of(home, path) for state in self._in(folder)]

    def refreshed(self, state: FileState) -> FileState:
        """Return the present state of a file; `state` when it cannot be looked at or another file is at its path."""
        try:
            now = self._state(state.path)
        except SourceError:
            return state
        return now if now.inode == state.inode else state

    def is_final(self, state: FileState) -> bool:
        """Return whether a file gets no more bytes, so that a last line without a line end is complete."""
        if self._limits is not None:
            return True
        return is_rotated(state.path) and self.watch.is_settled(state)

    def inodes(self) -> set[str]:
        """Return the inodes of all files at this look."""
        return set(self._by_inode)

    def _peek(self, path: str) -> FileState | None:
        try:
            return self._state(path)
        except SourceError as error:
            if isinstance(error, SourceMissing) or not isinstance(error.__cause__, OSError):
                return None  # it is gone, or is no regular file
            raise

    def _in(self, folder: str) -> Sequence[FileState]:
        if folder not in self._folders:
            self._folders[folder] = [state for path in _entries(folder) if (state := self._peek(path)) is not None]
        return self._folders[folder]

    def _state(self, path: str) -> FileState:
        try:
            link = stat.S_ISLNK(os.lstat(path).st_mode)
            status = os.stat(path)  # noqa: PTH116  (the path as it was given)
        except OSError as error:
            raise refused(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise irregular(path, status.st_mode)
        inode = inode_of(status)
        limit = status.st_size if self._limits is None else self._limits.get(inode, status.st_size)
        state = FileState(os.path.realpath(path) if link else path, inode, status.st_size, status.st_mtime_ns, limit)
        self._by_inode.setdefault(inode, state)
        self.watch.observe(state)
        return state


def folders_of(*paths: str) -> Iterable[str]:
    """Return the folders of `paths` and of the targets of links, without duplicates."""
    folders = [str(Path(place).parent) for path in paths for place in (path, os.path.realpath(path))]
    return {os.path.realpath(folder): folder for folder in reversed(folders)}.values()


def _entries(folder: str) -> Sequence[str]:
    """Return the paths of the files in a folder, sorted, without links and names that are not UTF-8."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_file(follow_symlinks=False) and _is_text(entry.path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused(folder, error) from error


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_undecodable(path: str) -> None:
    """Raise SourceError for a path that is not UTF-8: positions are stored as text, also between runs."""
    if not _is_text(path):
        raise SourceError(f"{visible(path)} is not followed, since its name is not UTF-8; rename it, or use tocsin scan")
