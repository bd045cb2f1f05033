"""What there is on disk at one look: the files asked for, and their neighbours, where a rotated file may have gone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from connectors.files.contents import Contents, FileState, inode_of
from connectors.files.finding import Found
from connectors.files.opening import irregular, refused
from connectors.files.positions import Cursor
from connectors.files.rotation import is_rotated
from engine.errors import SourceError, SourceMissing
from engine.model.visible import visible

SETTLED_S = 10.0  # for so long an archive that cannot be read to its end may still be written, and a last line without an end
RESTED_S = 2.0  # after this a change would be seen by the time of the last change
QUIET_S = 30.0  # a file that nobody wrote to for so long has no last words that were not seen


class Watch:
    """For how long files were unchanged, as far as this process has seen. Clocks are asked, never trusted to go on evenly:
    the one on the wall may only make a file look older.

    Args:
        clock: seconds that only go forward.
        wall: seconds since 1970.
        final: nothing is waited for.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float], final: bool) -> None:
        self._clock, self._wall, self._final = clock, wall, final
        self._since: dict[str, tuple[tuple[int, int], float]] = {}
        self._now = clock()
        self._before = self._now

    def begin(self) -> None:
        """Begin a look."""
        self._before, self._now = self._now, self._clock()

    def see(self, state: FileState) -> None:
        """Take in a file as it is."""
        key = state.bytes, state.changed_ns
        if self._since.get(state.inode, (None, 0.0))[0] != key:
            self._since[state.inode] = key, self._now

    def keep(self, inodes: set[str]) -> None:
        """Forget all other files."""
        self._since = {inode: each for inode, each in self._since.items() if inode in inodes}

    @property
    def inodes(self) -> set[str]:
        """The files that are remembered."""
        return set(self._since)

    def rests(self, state: FileState) -> bool:
        """Tell whether a change of the file would be seen."""
        return self._unchanged_s(state) >= RESTED_S

    def is_settled(self, state: FileState) -> bool:
        """Tell whether a file is no longer being written, as far as can be told."""
        return self._final or self._unchanged_s(state) >= SETTLED_S

    def looks_settled(self, state: FileState) -> bool:
        """Tell the same of a file that may have been there before this process."""
        return self.is_settled(state) or self._wall() - state.changed >= SETTLED_S

    def was_quiet(self, inode: str) -> bool:
        """Tell whether a file that is gone now had been unchanged for long at the look before."""
        return inode in self._since and self._before - self._since[inode][1] >= QUIET_S

    def is_quiet(self, inode: str) -> bool:
        """Tell whether a file that is there has been unchanged for long."""
        return inode in self._since and self._now - self._since[inode][1] >= QUIET_S

    def _unchanged_s(self, state: FileState) -> float:
        return self._now - self._since.get(state.inode, (None, self._now))[1]


class Look:
    """One look at the disk. `wanted` are the files asked for by path, `unreadable` what cannot be read, and why, by name.

    Args:
        limits: how much of each file may be read, when the input is bounded; no other file is wanted then.
    """

    def __init__(self, found: Found, contents: Contents, watch: Watch, limits: Mapping[str, int] | None) -> None:
        self.contents, self.watch = contents, watch
        self._limits = limits
        self._folders: dict[str, Sequence[FileState]] = {}
        self._by_inode: dict[str, FileState] = {}
        self.unreadable: dict[str, SourceError] = {}
        self.wanted: dict[str, FileState] = {}
        for error in found.errors:
            self.refuse(str(error).partition(": ")[0], error)
        for path in found.files:
            try:
                refuse_unspeakable(path)
                self.wanted[path] = self._state(path)
            except SourceError as error:
                self.refuse(path, error)
        if limits is not None:
            self.wanted = {path: state for path, state in self.wanted.items() if state.inode in limits}

    def bound(self, limits: Mapping[str, int]) -> None:
        """Read no more of a file than `limits` say: of input that is bounded by this look itself."""
        self._limits = limits

    def refuse(self, what: str, error: SourceError) -> None:
        """Remember that `what` cannot be read; what is not there is no trouble."""
        if not isinstance(error, SourceMissing):
            self.unreadable[visible(what)] = error

    def now(self, cursor: Cursor, home: str) -> FileState | None:
        """Return the file that has the inode of `cursor`, None when none near has. Raises SourceError when nobody knows."""
        for path in (cursor.path, home):
            if cursor.inode not in self._by_inode:
                self._peek(path)
        if cursor.inode not in self._by_inode:
            self.neighbours(home, cursor.path)
        return self._by_inode.get(cursor.inode)

    def neighbours(self, home: str, path: str) -> Sequence[FileState]:
        """Return the files that are near a stream's home or the path of one of its files."""
        return [state for folder in folders_of(home, path) for state in self._in(folder)]

    def again(self, state: FileState) -> FileState:
        """Return the file as it is by now; as it was when it cannot be looked at."""
        try:
            now = self._state(state.path)
        except SourceError:
            return state
        return now if now.inode == state.inode else state

    def is_final(self, state: FileState) -> bool:
        """Tell whether a last line without its end is one: nobody will write on."""
        if self._limits is not None:
            return True
        return is_rotated(state.path) and self.watch.is_settled(state)

    def seen(self) -> set[str]:
        """Return the inodes of all files that were looked at."""
        return set(self._by_inode)

    def _peek(self, path: str) -> FileState | None:
        try:
            return self._state(path)
        except SourceError as error:
            if isinstance(error, SourceMissing) or not isinstance(error.__cause__, OSError):
                return None  # gone, or no regular file
            raise

    def _in(self, folder: str) -> Sequence[FileState]:
        if folder not in self._folders:
            self._folders[folder] = [state for path in _entries(folder) if (state := self._peek(path)) is not None]
        return self._folders[folder]

    def _state(self, path: str) -> FileState:
        try:
            link = stat.S_ISLNK(os.lstat(path).st_mode)
            found = os.stat(path)  # noqa: PTH116  (the path as it was given)
        except OSError as error:
            raise refused(path, error) from error
        if not stat.S_ISREG(found.st_mode):
            raise irregular(path, found.st_mode)
        inode = inode_of(found)
        limit = found.st_size if self._limits is None else self._limits.get(inode, found.st_size)
        state = FileState(os.path.realpath(path) if link else path, inode, found.st_size, found.st_mtime_ns, limit)
        self._by_inode.setdefault(inode, state)
        self.watch.see(state)
        return state


def folders_of(*paths: str) -> Iterable[str]:
    """Return the folders of some paths, and those that the paths lead to as links, each once."""
    folders = [str(Path(each).parent) for path in paths for each in (path, os.path.realpath(path))]
    return {os.path.realpath(folder): folder for folder in reversed(folders)}.values()


def _entries(folder: str) -> Sequence[str]:
    """Return the paths of what is in a folder, sorted, but for links and names that are no text."""
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


def refuse_unspeakable(path: str) -> None:
    """Raise SourceError for a path whose bytes are no text: where it stands is kept as text, between runs too."""
    if not _is_text(path):
        raise SourceError(f"{visible(path)} is not followed, for its name is no UTF-8; rename it, or give it to tocsin scan")
