"""Find out what became of the files of the streams: renamed, compressed, copied and then cut, only cut, gone, or new.

No lines are read here. A file is identified by its content: see Cursor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum

from msgspec.structs import replace

from connectors.files.contents import FileState
from connectors.files.disk import Look
from connectors.files.positions import (
    MAX_VANISHED,
    VERSION,
    Copied,
    Cursor,
    FilePositions,
    FileStream,
    Vanished,
    with_loss,
    without_file,
)
from connectors.files.reading import source_name
from connectors.files.rotation import is_rotated
from engine.errors import SourceError

SMALL_BYTES = 1 << 20


class Fate(Enum):
    """The fate of a file that is not at its path, when no other file has its content."""

    GONE = "gone"
    UNKNOWN = "unknown"  # a later look decides


def followed(before: FilePositions, look: Look) -> tuple[FilePositions, Mapping[str, FileState]]:
    """Return `before` brought up to date with the disk, and the files that can be read, by inode.

    No position advances. In the returned streams every file has its present path, successors and new files are
    added, and everything that can never be read any more is a loss.
    """
    following = _Following(before, look)
    return following.positions(), following.readable


class _Following:
    """The decisions of one look. `readable`: by inode, the files that still have, or now have, the content of a stream."""

    def __init__(self, before: FilePositions, look: Look) -> None:
        self._look, self._contents = look, look.contents
        self._streams = {name: replace(stream, pieces=(), lost=(), behind=False) for name, stream in before.streams.items()}
        self._vanished = list(before.vanished)
        self._claimed: set[str] = set()  # inodes of files that belong to a stream
        self._at_path = {state.path: state for state in look.wanted.values()}
        self._by_first: dict[str, list[tuple[str, str]]] = {}  # stream and inode of followed files, by digest of the first line
        self._homes: dict[str, str] = {}  # by home, the streams that continue in a new file there
        self.readable: dict[str, FileState] = {}

    def positions(self) -> FilePositions:
        missing = [(name, cursor) for name in list(self._streams) for cursor in self._missing(name)]
        for name, cursor in missing:
            self._search(name, cursor)
        for name in list(self._streams):
            self._update_copies(name)
        self._add_new()
        streams = {name: stream for name, stream in sorted(self._streams.items()) if _is_needed(stream)}
        return FilePositions(VERSION, streams, tuple(self._vanished[-MAX_VANISHED:]))

    # --- files of a stream -----------------------------------------------------------------------------------------------

    def _missing(self, name: str) -> Iterator[Cursor]:
        """Yield the files of a stream that are not at their paths; bring the others up to date."""
        for cursor in self._streams[name].files:
            try:
                state = self._look.locate(cursor, self._streams[name].home)
                if state is None or not self._is(state, cursor):
                    yield cursor
                    continue
                if not cursor.first and cursor.at == cursor.head.start and state.path in self._at_path:
                    self._drop(name, cursor)  # it had no whole line; once it has one, its stream is decided
                    continue
                now = self._refreshed(state, cursor)
            except SourceError as error:
                self._look.refuse(cursor.path, error)
                self._claimed.add(cursor.inode)
                continue
            self._claimed.add(state.inode)
            self.readable[state.inode] = state
            self._replace(name, cursor, now)
            if now.size < cursor.size and not state.packed:
                why = f"the file was cut to {now.size} bytes; what was written in between is unknown"
                self._streams[name] = with_loss(self._streams[name], cursor.size - max(now.size, cursor.at), why)

    def _is(self, state: FileState, cursor: Cursor) -> bool:
        if not cursor.head.end and not state.path.startswith(cursor.path):
            return False  # it was empty: another file may have its inode by now
        return self._contents.holds(state, cursor)

    def _refreshed(self, state: FileState, cursor: Cursor) -> Cursor:
        settled = cursor.settled or (is_rotated(state.path) and self._look.watch.is_quiet(state.inode))
        if state.packed and state.packed == cursor.packed:
            return replace(cursor, path=state.path, changed=state.changed, settled=settled)
        return replace(self._at(state, cursor), settled=settled)

    def _at(self, state: FileState, cursor: Cursor) -> Cursor:
        if not cursor.first:
            cursor = replace(cursor, first=self._contents.first(state, self._look.is_final(state))[0])
        return self._contents.at(state, cursor, cursor.at)

    def _search(self, name: str, cursor: Cursor) -> None:
        """Follow a file to where its content is now; when it is nowhere, record the rest of it as lost."""
        stream = self._streams[name]
        try:
            holder = self._holder(stream, cursor)
            if holder is Fate.UNKNOWN:
                return
            if isinstance(holder, FileState):
                self._claimed.add(holder.inode)
                self.readable[holder.inode] = holder
                self._move(name, cursor, holder)
                return
        except SourceError as error:
            self._look.refuse(cursor.path, error)
            return
        quiet = cursor.settled or self._look.watch.was_quiet(cursor.inode)
        self._streams[name] = without_file(stream, cursor, quiet and not self._was_cut(cursor), self._why(cursor))
        self._vanished.append(Vanished(name, cursor))
        with suppress(SourceError):
            self._restart(name, cursor)

    def _restart(self, name: str, cursor: Cursor) -> None:
        """Follow, from its start, a file that was cut and then rotated to a name that was not asked for."""
        state = self._look.locate(cursor, self._streams[name].home)
        if state is None or state.inode in self._claimed or state.path in self._at_path:
            return
        if state.path.startswith(cursor.path) and state.path != cursor.path:
            first, start = self._contents.first(state, self._look.is_final(state))
            now = self._contents.begun(state, first, start, start)
            self._claimed.add(state.inode)
            self.readable[state.inode] = state
            self._streams[name] = replace(self._streams[name], files=(*self._streams[name].files, now))

    def _move(self, name: str, cursor: Cursor, holder: FileState) -> None:
        now = self._at(holder, cursor)
        self._replace(name, cursor, now)
        if holder.packed and now.at == now.size and (damage := self._contents.unpacked(holder, 0).damage):
            self._streams[name] = with_loss(self._streams[name], 0, damage)

    def _holder(self, stream: FileStream, cursor: Cursor) -> FileState | Fate:
        """Return the file that has the content of a missing one now, an archive or a copy; of several, the longest."""
        if cursor.head.end == cursor.head.start:
            return Fate.GONE
        candidates = {state.inode: state for state in self._look.neighbours(stream.home, cursor.path)}
        candidates |= {state.inode: state for state in self._look.wanted.values() if state.inode not in self._claimed}
        holders: list[FileState] = []
        unfinished = False
        for state in candidates.values():
            if state.inode not in self._claimed and self._begins_with(state, cursor):
                if state.packed and self._contents.unpacked(state, 0).damage and not self._look.watch.is_settled(state):
                    unfinished = True
                elif self._contents.holds(state, cursor):
                    holders.append(state)
        if holders:
            return max(holders, key=lambda state: (self._contents.size(state), not state.packed, state.path))
        return Fate.UNKNOWN if unfinished else Fate.GONE

    def _begins_with(self, state: FileState, cursor: Cursor) -> bool:
        try:
            return self._contents.fingerprint_of(state, cursor.head.start, cursor.head.end) == cursor.head
        except SourceError:
            return False  # it cannot be read; if it was asked for, that is reported elsewhere

    def _was_cut(self, cursor: Cursor) -> bool:
        state = self._at_path.get(cursor.path)
        return state is not None and state.inode == cursor.inode

    def _why(self, cursor: Cursor) -> str:
        if self._was_cut(cursor):
            return f"the file was cut to {self._at_path[cursor.path].bytes} bytes; what was written in between is unknown"
        if cursor.path in self._at_path:
            return "the file was replaced, and no file near it has the lines that were written to it since it was last read"
        return "the file is gone, and no file near it has the lines that were written to it since it was last read"

    def _drop(self, name: str, cursor: Cursor) -> None:
        stream = self._streams[name]
        self._streams[name] = replace(stream, files=tuple(file for file in stream.files if file != cursor))

    def _replace(self, name: str, cursor: Cursor, now: Cursor) -> None:
        stream = self._streams[name]
        files = tuple(now if file == cursor else file for file in stream.files)
        self._streams[name] = replace(stream, files=files)

    # --- copies of files of a stream -------------------------------------------------------------------------------------

    def _update_copies(self, name: str) -> None:
        """Bring the copies of a stream up to date. A copy whose original is gone becomes a file of the stream, read to its end;
        one that is no longer a copy is left out, and so counts as new."""
        stream = self._streams[name]
        copies: list[Copied] = []
        successors: list[Cursor] = []
        for copied in stream.copies:
            try:
                state = self._copy(stream, copied.copy)
                if not isinstance(state, FileState):
                    copies += [copied] if state is Fate.UNKNOWN else []
                    self._vanished += [Vanished(name, copied.copy)] if state is Fate.GONE else []
                    continue
                original = self.readable.get(copied.original)
                if original is None:
                    successors.append(self._at_end(state, copied.copy))
                elif self._contents.begins_like(state, self._look.refreshed(original)):
                    copies.append(Copied(self._at_end(state, copied.copy), copied.original))
                else:
                    continue  # it got lines of its own: a file like any other
                self._claimed.add(state.inode)
            except SourceError:
                continue
        self._streams[name] = replace(stream, copies=tuple(copies), files=(*successors, *stream.files))

    def _copy(self, stream: FileStream, copy: Cursor) -> FileState | Fate:
        """Return the file that has the content of a copy now."""
        state = self._look.locate(copy, stream.home)
        if state is not None and state.inode not in self._claimed and self._contents.holds(state, copy):
            return state
        if state is not None and state.inode in self._claimed:
            return Fate.GONE  # it is a file of a stream by now
        return self._holder(stream, copy)

    def _at_end(self, state: FileState, cursor: Cursor) -> Cursor:
        size = self._contents.size(state)
        return self._contents.at(state, cursor, size) if (size, state.path) != (cursor.at, cursor.path) else cursor

    # --- files that belong to no stream ----------------------------------------------------------------------------------

    def _add_new(self) -> None:
        """Add the files that are new, live logs first, so that a copy of one counts as the copy and not as the log."""
        for name, stream in self._streams.items():
            for cursor in stream.files:
                self._by_first.setdefault(cursor.first, []).append((name, cursor.inode))
            if not is_rotated(stream.home) or not stream.files:
                self._homes.setdefault(stream.home, name)
        new = [(path, state) for path, state in self._look.wanted.items() if state.inode not in self._claimed]
        for path, state in sorted(new, key=lambda file: is_rotated(file[0])):
            try:
                if state.inode not in self._claimed and self._is_ready(state):
                    self._add(path, state)
            except SourceError as error:
                self._look.refuse(path, error)

    def _is_ready(self, state: FileState) -> bool:
        """Return whether a file may be read: a compressed one only if it is complete or is no longer being written."""
        watch = self._look.watch
        if not state.packed or watch.is_settled(state):
            return True
        if state.packed > SMALL_BYTES and not watch.looks_settled(state):
            return False  # it is not decompressed at every look while it is being written
        return not self._contents.unpacked(state, 0).damage

    def _add(self, path: str, state: FileState) -> None:
        first, start = self._contents.first(state, self._look.is_final(state))
        self._claimed.add(state.inode)
        if first and self._add_copy(state, first, start):
            return
        self.readable[state.inode] = state
        name = self._add_returned(path, state, first) if first else None
        if name is None:
            name = self._homes.get(path) or free_name(path, self._streams)
            stream = self._streams.get(name, FileStream(path))
            cursor = self._contents.begun(state, first, start, start)
            self._streams[name] = replace(stream, files=(*stream.files, cursor))
        self._by_first.setdefault(first, []).append((name, state.inode))

    def _add_copy(self, state: FileState, first: str, start: int) -> bool:
        """Add `state` to the copies of a stream if the content of one of its files begins with all of `state`. Return whether
        one does."""
        for name, inode in self._by_first.get(first, ()):
            original = self.readable.get(inode)
            if original is not None and self._contents.begins_like(state, self._look.refreshed(original)):
                copy = self._contents.begun(state, first, start, self._contents.size(state))
                stream = self._streams[name]
                self._streams[name] = replace(stream, copies=(*stream.copies, Copied(copy, inode)))
                return True
        return False

    def _add_returned(self, path: str, state: FileState, first: str) -> str | None:
        """Add `state` to its stream if it is a vanished file that came back, compressed or with its old inode, at the position
        to which that was read. Return the name of the stream; None when it is no such file."""
        for vanished in reversed(self._vanished):
            cursor = vanished.cursor
            same = cursor.first == first and (bool(state.packed) or state.inode == cursor.inode)
            if same and self._contents.holds(state, cursor):
                self._vanished.remove(vanished)
                stream = self._streams.get(vanished.stream, FileStream(path, end=cursor.at))
                files = (*stream.files, self._contents.at(state, cursor, cursor.at))
                self._streams[vanished.stream] = replace(stream, files=files)
                return vanished.stream
        return None


def _is_needed(stream: FileStream) -> bool:
    """Return whether a stream must be stored: a stream without files whose home is a rotated file can get no more lines."""
    return bool(stream.files or stream.lost or not is_rotated(stream.home))


def free_name(path: str, streams: Mapping[str, FileStream]) -> str:
    """Return the source name of a file; with a number behind it where a stream has that name."""
    name, count = source_name(path), 1
    while name in streams:
        count += 1
        name = f"{source_name(path)}~{count}"
    return name
