"""From where the streams stood to where their files are now: renamed, compressed, copied and cut, cut, gone, or new.

Nothing is read on here. What a file is, is told by its content: see Cursor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum

from msgspec.structs import replace

from connectors.files.contents import FileState
from connectors.files.disk import Look
from connectors.files.positions import (
    VANISHED_KEPT,
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
    """What has become of a file that is not where it was, when it is in no other."""

    GONE = "gone"
    UNKNOWN = "unknown"  # the next look may tell


def followed(before: FilePositions, look: Look) -> tuple[FilePositions, Mapping[str, FileState]]:
    """Return the positions on the disk as it is now, nothing more read: every file wherever it went, its successor, new ones;
    and the files that can be read on, by inode.

    What can never be read any more is lost in the streams that are returned.
    """
    following = _Following(before, look)
    return following.positions(), following.there


class _Following:
    """The decisions of one look. `there` are the files that are what they were, or hold that now."""

    def __init__(self, before: FilePositions, look: Look) -> None:
        self._look, self._contents = look, look.contents
        self._streams = {name: replace(stream, pieces=(), lost=(), behind=False) for name, stream in before.streams.items()}
        self._vanished = list(before.vanished)
        self._claimed: set[str] = set()  # inodes that belong to a stream already
        self._at_path = {state.path: state for state in look.wanted.values()}
        self._by_first: dict[str, list[tuple[str, str]]] = {}  # stream and inode of what is followed, by its first line
        self._homes: dict[str, str] = {}  # streams that go on in a new file at their home, by that
        self.there: dict[str, FileState] = {}

    def positions(self) -> FilePositions:
        missing = [(name, cursor) for name in list(self._streams) for cursor in self._missing(name)]
        for name, cursor in missing:
            self._search(name, cursor)
        for name in list(self._streams):
            self._keep_copies(name)
        self._take_new()
        streams = {name: stream for name, stream in sorted(self._streams.items()) if _goes_on(stream)}
        return FilePositions(VERSION, streams, tuple(self._vanished[-VANISHED_KEPT:]))

    # --- files that are followed already ---------------------------------------------------------------------------------

    def _missing(self, name: str) -> Iterator[Cursor]:
        """Yield the files of a stream that are not there; bring the others up to date."""
        for cursor in self._streams[name].files:
            try:
                state = self._look.now(cursor, self._streams[name].home)
                if state is None or not self._is(state, cursor):
                    yield cursor
                    continue
                if not cursor.first and cursor.at == cursor.head.start and state.path in self._at_path:
                    self._drop(name, cursor)  # it had no whole line: whose it is, is decided when it has
                    continue
                now = self._refreshed(state, cursor)
            except SourceError as error:
                self._look.refuse(cursor.path, error)
                self._claimed.add(cursor.inode)
                continue
            self._claimed.add(state.inode)
            self.there[state.inode] = state
            self._replace(name, cursor, now)
            if now.size < cursor.size and not state.packed:
                why = f"the file was cut to {now.size} bytes; what was written in between is unknown"
                self._streams[name] = with_loss(self._streams[name], cursor.size - max(now.size, cursor.at), why)

    def _is(self, state: FileState, cursor: Cursor) -> bool:
        if not cursor.head.end and not state.path.startswith(cursor.path):
            return False  # it was empty: another file may bear its inode by now
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
        """Follow a file to where its content went, or take what is left of it as lost."""
        stream = self._streams[name]
        try:
            holder = self._holder(stream, cursor)
            if holder is Fate.UNKNOWN:
                return
            if isinstance(holder, FileState):
                self._claimed.add(holder.inode)
                self.there[holder.inode] = holder
                self._move(name, cursor, holder)
                return
        except SourceError as error:
            self._look.refuse(cursor.path, error)
            return
        quiet = cursor.settled or self._look.watch.was_quiet(cursor.inode)
        self._streams[name] = without_file(stream, cursor, quiet and not self._was_cut(cursor), self._why(cursor))
        self._vanished.append(Vanished(name, cursor))
        with suppress(SourceError):
            self._begin_again(name, cursor)

    def _begin_again(self, name: str, cursor: Cursor) -> None:
        """Follow a file that was cut and then rotated to a name that nobody asked for."""
        state = self._look.now(cursor, self._streams[name].home)
        if state is None or state.inode in self._claimed or state.path in self._at_path:
            return
        if state.path.startswith(cursor.path) and state.path != cursor.path:
            first, start = self._contents.first(state, self._look.is_final(state))
            now = self._contents.begun(state, first, start, start)
            self._claimed.add(state.inode)
            self.there[state.inode] = state
            self._streams[name] = replace(self._streams[name], files=(*self._streams[name].files, now))

    def _move(self, name: str, cursor: Cursor, holder: FileState) -> None:
        now = self._at(holder, cursor)
        self._replace(name, cursor, now)
        if holder.packed and now.at == now.size and (damage := self._contents.unpacked(holder, 0).damage):
            self._streams[name] = with_loss(self._streams[name], 0, damage)

    def _holder(self, stream: FileStream, cursor: Cursor) -> FileState | Fate:
        """Return the file that the content of a missing one is in now: an archive or a copy."""
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
            return self._contents.print_of(state, cursor.head.start, cursor.head.end) == cursor.head
        except SourceError:
            return False  # it cannot be read: whoever asked for it is told of that

    def _was_cut(self, cursor: Cursor) -> bool:
        state = self._at_path.get(cursor.path)
        return state is not None and state.inode == cursor.inode

    def _why(self, cursor: Cursor) -> str:
        if self._was_cut(cursor):
            return f"the file was cut to {self._at_path[cursor.path].bytes} bytes; what was written in between is unknown"
        if cursor.path in self._at_path:
            return "the file was replaced, and what was written to it since it was last read is in no file near it"
        return "the file is gone, and what was written to it since it was last read is in no file near it"

    def _drop(self, name: str, cursor: Cursor) -> None:
        stream = self._streams[name]
        self._streams[name] = replace(stream, files=tuple(each for each in stream.files if each != cursor))

    def _replace(self, name: str, cursor: Cursor, now: Cursor) -> None:
        stream = self._streams[name]
        files = tuple(now if each == cursor else each for each in stream.files)
        self._streams[name] = replace(stream, files=files)

    # --- copies of files that are followed -------------------------------------------------------------------------------

    def _keep_copies(self, name: str) -> None:
        stream = self._streams[name]
        copies: list[Copied] = []
        taken: list[Cursor] = []
        for each in stream.copies:
            try:
                state = self._copy(stream, each.copy)
                if not isinstance(state, FileState):
                    copies += [each] if state is Fate.UNKNOWN else []
                    self._vanished += [Vanished(name, each.copy)] if state is Fate.GONE else []
                    continue
                original = self.there.get(each.original)
                if original is None:
                    taken.append(self._at_end(state, each.copy))
                elif self._contents.begins_like(state, self._look.again(original)):
                    copies.append(Copied(self._at_end(state, each.copy), each.original))
                else:
                    continue  # it goes on by itself: a file like any other
                self._claimed.add(state.inode)
            except SourceError:
                continue
        self._streams[name] = replace(stream, copies=tuple(copies), files=(*taken, *stream.files))

    def _copy(self, stream: FileStream, copy: Cursor) -> FileState | Fate:
        """Return the file that a copy is in now."""
        state = self._look.now(copy, stream.home)
        if state is not None and state.inode not in self._claimed and self._contents.holds(state, copy):
            return state
        if state is not None and state.inode in self._claimed:
            return Fate.GONE  # it is followed itself by now
        return self._holder(stream, copy)

    def _at_end(self, state: FileState, cursor: Cursor) -> Cursor:
        size = self._contents.size(state)
        return self._contents.at(state, cursor, size) if (size, state.path) != (cursor.at, cursor.path) else cursor

    # --- files that belong to no stream ----------------------------------------------------------------------------------

    def _take_new(self) -> None:
        """Take in what is new; live logs first: a copy of one is a copy, not the log."""
        for name, stream in self._streams.items():
            for cursor in stream.files:
                self._by_first.setdefault(cursor.first, []).append((name, cursor.inode))
            if not is_rotated(stream.home) or not stream.files:
                self._homes.setdefault(stream.home, name)
        new = [(path, state) for path, state in self._look.wanted.items() if state.inode not in self._claimed]
        for path, state in sorted(new, key=lambda each: is_rotated(each[0])):
            try:
                if state.inode not in self._claimed and self._is_ready(state):
                    self._take(path, state)
            except SourceError as error:
                self._look.refuse(path, error)

    def _is_ready(self, state: FileState) -> bool:
        """Tell whether a file may be read: a compressed one when it is whole, or nobody writes to it any more."""
        watch = self._look.watch
        if not state.packed or watch.is_settled(state):
            return True
        if state.packed > SMALL_BYTES and not watch.looks_settled(state):
            return False  # not unpacked at each look while it is being written
        return not self._contents.unpacked(state, 0).damage

    def _take(self, path: str, state: FileState) -> None:
        first, start = self._contents.first(state, self._look.is_final(state))
        self._claimed.add(state.inode)
        if first and self._is_copy(state, first, start):
            return
        self.there[state.inode] = state
        name = self._returned(path, state, first) if first else None
        if name is None:
            name = self._homes.get(path) or _free_name(path, self._streams)
            stream = self._streams.get(name, FileStream(path))
            cursor = self._contents.begun(state, first, start, start)
            self._streams[name] = replace(stream, files=(*stream.files, cursor))
        self._by_first.setdefault(first, []).append((name, state.inode))

    def _is_copy(self, state: FileState, first: str, start: int) -> bool:
        """Tell whether a file that is followed has a content that begins with all of `state`; then that is remembered there."""
        for name, inode in self._by_first.get(first, ()):
            original = self.there.get(inode)
            if original is not None and self._contents.begins_like(state, self._look.again(original)):
                copy = self._contents.begun(state, first, start, self._contents.size(state))
                stream = self._streams[name]
                self._streams[name] = replace(stream, copies=(*stream.copies, Copied(copy, inode)))
                return True
        return False

    def _returned(self, path: str, state: FileState, first: str) -> str | None:
        """Return the stream of a file that had vanished, when `state` is that: compressed, or under its old inode. It is
        followed again, from where it was read to."""
        for each in reversed(self._vanished):
            cursor = each.cursor
            same = cursor.first == first and (bool(state.packed) or state.inode == cursor.inode)
            if same and self._contents.holds(state, cursor):
                self._vanished.remove(each)
                stream = self._streams.get(each.stream, FileStream(path, end=cursor.at))
                files = (*stream.files, self._contents.at(state, cursor, cursor.at))
                self._streams[each.stream] = replace(stream, files=files)
                return each.stream
        return None


def _goes_on(stream: FileStream) -> bool:
    """Tell whether there is more to say of a stream: a rotated file that is gone never comes back under its name."""
    return bool(stream.files or stream.lost or not is_rotated(stream.home))


def _free_name(path: str, streams: Mapping[str, FileStream]) -> str:
    name, count = source_name(path), 1
    while name in streams:
        count += 1
        name = f"{source_name(path)}~{count}"
    return name
