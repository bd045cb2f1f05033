"""Random histories of logs on disk: writers, rotation, compression, copying, cutting, and a job that reads and is killed.

The model is the list of all lines that were ever written, and what became of each: whether it can still be read somewhere, and
if it cannot, between which two looks it went, or why nobody can know that it did.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from connectors.files import find, read_path
from engine.errors import DataLoss
from engine.model.records import RawLine
from engine.ports import Chunk, Offset
from tests.unit.connectors.files.triggers import LONG_S, Clocks, Reader

LOGS = ("app.log", "other.log", "pod.log")  # the last one is a link
KEPT = 4  # rotated files of a log
LINES = st.integers(0, 3)  # written just before something happens


@dataclass
class Writer:
    """A program that writes one log: to the file that it has open, wherever that was moved."""

    log: Path
    appends: bool = True
    handle: int = -1
    at: int = 0
    half: str = ""

    def open(self) -> None:
        self.close()
        self.handle = os.open(self.log, os.O_CREAT | os.O_WRONLY | (os.O_APPEND if self.appends else 0), 0o644)
        self.at = os.lseek(self.handle, 0, os.SEEK_END)

    def close(self) -> None:
        if self.handle >= 0:
            self.finish()
            os.close(self.handle)
            self.handle = -1

    def finish(self) -> None:
        self.write(self.half)
        self.half = ""

    def write(self, text: str) -> None:
        os.write(self.handle, text.encode())  # without O_APPEND: where this program wrote last, whatever was cut since

    @property
    def inode(self) -> int:
        return os.fstat(self.handle).st_ino

    @property
    def is_visible(self) -> bool:
        return os.fstat(self.handle).st_nlink > 0


@dataclass
class Model:
    """Every line by its text. `gone` are lines that no file near the logs holds any more and that were not read by then: with
    the number of looks there had been. `excused`: nobody can know that they ever were."""

    written: dict[str, str] = field(default_factory=dict)  # line: log
    gone: dict[str, int] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    harmed: set[str] = field(default_factory=set)  # logs that somebody cut or deleted


class FileHistories(RuleBasedStateMachine):
    """One history. Each rule is something that happens to a log, to the clock, or to the job; one that cannot happen is
    none. Which can depends on inodes that the file system gives again, so it must not lead what is drawn."""

    half_chars = 7  # of half a line: enough to tell it from all others

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.logs, self.outside, self.pods = (self.root / name for name in ("logs", "outside", "pods"))
        for folder in (self.logs, self.outside, self.pods):
            folder.mkdir()
        (self.pods / "0.log").touch()
        (self.logs / "pod.log").symlink_to("../pods/0.log")
        self.model = Model()
        self.writers = {name: Writer(self.logs / name, appends=name != "other.log") for name in LOGS}
        for writer in self.writers.values():
            writer.open()
        self.count = 0
        self.looks = 0
        self.quiet: set[int] = set()
        self.sizes: dict[int, int] = {}  # at the last look, by inode
        self.cut_at_rest: dict[int, set[str]] = {}  # what went with files that were quiet and were cut since the last look
        self.copied: dict[str, set[str]] = {}
        self.clocks = Clocks()
        self.reader = Reader({"paths": [str(self.logs)]}, self.clocks)
        self.planned: Offset | None = None
        self.batches: list[tuple[list[str], list[DataLoss]]] = []

    def teardown(self) -> None:
        try:
            self.settle()
            self.check()
        finally:
            for writer in self.writers.values():
                writer.close()
            shutil.rmtree(self.root)

    # --- the programs that write -----------------------------------------------------------------------------------------

    def line(self, log: str) -> str:
        self.count += 1
        line = f"{self.count:05} line of {log}"
        self.model.written[line] = log
        return line

    @initialize(lines=st.integers(0, 5), look=st.sampled_from([True, True, True, False]))
    def begin(self, lines: int, look: bool) -> None:
        for log in LOGS:
            self.append(log, lines)
        if look:
            self.trigger(None)

    @rule(log=st.sampled_from(LOGS), lines=st.integers(1, 5))
    def append(self, log: str, lines: int) -> None:
        writer = self.writers[log]
        if not writer.is_visible:
            writer.open()
        text = writer.half + "".join(f"{self.line(log)}\n" for _ in range(lines))
        writer.half = ""
        writer.write(text)

    @rule(log=st.sampled_from(LOGS))
    def append_half_a_line(self, log: str) -> None:
        writer = self.writers[log]
        if not writer.half and writer.is_visible:
            line = self.line(log) + "\n"
            writer.write(line[: self.half_chars])
            writer.half = line[self.half_chars :]

    @rule(log=st.sampled_from(LOGS))
    def reopen(self, log: str) -> None:
        self.writers[log].open()

    # --- what is done to their logs --------------------------------------------------------------------------------------

    def target(self, log: str) -> Path:
        return Path(os.path.realpath(self.logs / log))

    def rotated(self, log: str) -> list[Path]:
        target = self.target(log)
        return sorted(target.parent.glob(f"{target.name}.*"))

    def make_way(self, log: str) -> Path:
        """Move the rotated files on by one and return the free name."""
        target = self.target(log)
        for number in range(KEPT, 0, -1):
            for suffix in ("", ".gz"):
                path = target.with_name(f"{target.name}.{number}{suffix}")
                if path.exists():
                    if number == KEPT:
                        self.destroy(path, log)
                    else:
                        path.rename(target.with_name(f"{target.name}.{number + 1}{suffix}"))
        return target.with_name(f"{target.name}.1")

    def destroy(self, path: Path, log: str) -> None:
        self.model.excused |= self.cut_at_rest.pop(path.stat().st_ino, set())  # nobody sees that it was cut
        self.lose(path, log)
        path.unlink()

    def lose(self, path: Path, log: str) -> None:
        """Take in that what `path` holds will be gone from there."""
        lines = self.lines_of(path)
        elsewhere = {line for other in self.files() if other != path for line in self.lines_of(other)}
        unread = [line for line in lines if line not in elsewhere and line not in self.seen()]
        self.model.harmed.add(log)
        inode = path.stat().st_ino
        never_seen = not self.sizes.pop(inode, 0)
        if never_seen or inode in self.quiet or set(unread) <= self.copied.get(str(path), set()):
            self.model.excused |= set(unread)
        for line in unread:
            self.model.gone.setdefault(line, self.looks)

    def files(self) -> list[Path]:
        return [path for folder in (self.logs, self.pods) for path in folder.iterdir() if not path.is_symlink()]

    def lines_of(self, path: Path) -> list[str]:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().replace("\0", "")
        return [line for line in text.split("\n") if line in self.model.written]

    @rule(log=st.sampled_from(LOGS), lines=LINES, at_once=st.booleans())
    def rotate(self, log: str, lines: int, at_once: bool) -> None:
        self.append(log, lines)
        target = self.target(log)
        if target.exists():
            self.behind_the_link(target)
            target.rename(self.make_way(log))
            if at_once or self.writers[log].handle < 0:
                self.reopen(log)

    @rule(log=st.sampled_from(LOGS), lines=LINES, whose=st.integers(0, KEPT))
    def compress(self, log: str, lines: int, whose: int) -> None:
        self.append(log, lines)
        plain = [path for path in self.rotated(log) if path.suffix != ".gz"]
        if plain:
            path = plain[whose % len(plain)]
            if path.stat().st_ino == self.writers[log].inode:
                self.reopen(log)
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            self.unlink_compressed(path)

    def unlink_compressed(self, path: Path) -> None:
        if not self.sizes.pop(path.stat().st_ino, 0) and path.parent == self.pods:
            self.excuse(path)  # it was empty at the last look, and nobody asked for its archive
        path.unlink()

    @rule(log=st.sampled_from(LOGS), whose=st.integers(0, KEPT), cut=st.integers(1, 60))
    def compress_slowly(self, log: str, whose: int, cut: int) -> None:
        """An archive is looked at while it is being written."""
        plain = [path for path in self.rotated(log) if path.suffix != ".gz"]
        if plain:
            path = plain[whose % len(plain)]
            if path.stat().st_ino == self.writers[log].inode:
                self.reopen(log)
            data = gzip.compress(path.read_bytes())
            archive = path.with_name(path.name + ".gz")
            archive.write_bytes(data[:-cut] if cut < len(data) else b"")
            held, self.files = self.files, lambda: [each for each in held() if each != archive]
            self.trigger(None)
            self.files = held
            archive.write_bytes(data)
            self.unlink_compressed(path)

    @rule(log=st.sampled_from(LOGS), lines=LINES, inside=st.booleans(), look=st.booleans(), between=st.integers(0, 2))
    def copy_and_cut(self, log: str, lines: int, inside: bool, look: bool, between: int) -> None:
        """logrotate's copytruncate. What is written between copying and cutting is lost unless it was read by chance."""
        self.append(log, lines)
        writer, target = self.writers[log], self.target(log)
        if not target.exists() or target.stat().st_ino != writer.inode:
            return
        writer.finish()
        if target.parent == self.pods and not self.sizes.get(writer.inode):
            self.excuse(target)  # it was empty at the last look: no copy behind a link can be told to be its
        copy = self.make_way(log) if inside else self.outside / f"{self.count}-{self.looks}"
        shutil.copyfile(target, copy)
        if between:
            before = len(self.model.written)
            self.append(log, between)
            self.copied[str(target)] = set(islice(self.model.written, before, None))
        if look:
            self.trigger(None)
        self.cut(log, harmless=inside and not between)
        self.copied.pop(str(target), None)

    @rule(log=st.sampled_from(LOGS), lines=LINES)
    def truncate(self, log: str, lines: int) -> None:
        self.append(log, lines)
        writer, target = self.writers[log], self.target(log)
        if target.exists() and target.stat().st_ino == writer.inode:
            writer.finish()
            self.cut(log)

    def cut(self, log: str, harmless: bool = False) -> None:
        target = self.target(log)
        harmed, gone, inode = set(self.model.harmed), set(self.model.gone), target.stat().st_ino
        was_quiet = inode in self.quiet
        self.quiet.discard(inode)
        self.lose(target, log)
        if was_quiet:
            self.cut_at_rest[inode] = self.model.gone.keys() - gone
        if harmless:
            self.model.harmed = harmed
        os.truncate(target, 0)

    @rule(log=st.sampled_from(LOGS), lines=LINES, again=st.booleans())
    def delete(self, log: str, lines: int, again: bool) -> None:
        self.append(log, lines)
        target = self.target(log)
        if target.exists():
            self.writers[log].finish()
            self.destroy(target, log)
            if again:
                self.reopen(log)

    def behind_the_link(self, old: Path) -> None:
        """Take in that a file is no longer behind the link: nobody can know of it if it was not looked at."""
        if old.parent == self.pods and old.exists() and old.stat().st_ino not in self.sizes:
            if old.stat().st_ino == self.writers["pod.log"].inode:
                self.writers["pod.log"].close()
            self.excuse(old)

    def excuse(self, path: Path) -> None:
        self.model.excused |= {line for line in self.lines_of(path) if line not in self.seen()}

    @rule(lines=LINES)
    def switch_link(self, lines: int) -> None:
        """A container starts anew: its log is another file behind the same link."""
        self.append("pod.log", lines)
        link = self.logs / "pod.log"
        fresh = self.pods / f"{self.count}-{self.looks}.log"
        fresh.touch()
        self.behind_the_link(self.target("pod.log"))
        link.unlink()
        link.symlink_to(f"../pods/{fresh.name}")
        self.reopen("pod.log")

    # --- clocks ----------------------------------------------------------------------------------------------------------

    @rule(seconds=st.integers(-400_000, 400_000))
    def wall_clock_jumps(self, seconds: int) -> None:
        self.clocks.wall_s += seconds

    @rule()
    def time_passes(self) -> None:
        for writer in self.writers.values():
            writer.finish()
        for path in self.files():
            if path.exists():
                os.utime(path, ns=(0, path.stat().st_mtime_ns - int(LONG_S * 1e9)))
        self.trigger(None)
        self.clocks.pass_by(LONG_S)
        self.trigger(None)
        self.quiet = {path.stat().st_ino for path in self.files() if path.exists()}

    # --- the job ---------------------------------------------------------------------------------------------------------

    def seen(self) -> set[str]:
        return {line for lines, _ in self.batches for line in lines}

    def look(self) -> None:
        self.looks += 1
        self.cut_at_rest.clear()
        behind_link = self.target("pod.log")
        sizes = {path: path.stat() for path in self.files() if path.exists()}
        self.sizes = {
            stat.st_ino: stat.st_size
            for path, stat in sizes.items()
            if path.parent == self.logs or path == behind_link or stat.st_ino in self.sizes
        }

    @rule(max_lines=st.one_of(st.none(), st.integers(1, 6)))
    def plan(self, max_lines: int | None) -> None:
        if self.planned is not None:
            return
        self.look()
        end = self.reader.planned(max_lines)
        self.planned = end if end != self.reader.offset else None

    @rule()
    def read(self) -> None:
        if self.planned is None:
            return
        self.batches.append(self.attempt(self.planned))
        self.reader.offset, self.planned = self.planned, None

    @rule(max_lines=st.one_of(st.none(), st.integers(1, 6)))
    def trigger(self, max_lines: int | None) -> None:
        self.plan(max_lines)
        self.read()

    @rule()
    def batch(self) -> None:
        """As a job does most of the time."""
        self.trigger(None)

    @rule(log=st.sampled_from(LOGS), lines=st.integers(1, 5))
    def batch_of_what_is_appended(self, log: str, lines: int) -> None:
        self.append(log, lines)
        self.trigger(None)

    @rule()
    def kill_while_planning(self) -> None:
        """The offset was not persisted."""
        if self.planned is not None:
            return
        self.looks += 1
        self.reader.planned()
        self.reader.crash()

    @rule(had_read=st.booleans())
    def kill_while_reading(self, had_read: bool) -> None:
        """The offset was persisted, so the same batch is done again."""
        if had_read and self.planned is not None:
            self.attempt(self.planned)
        self.reader.crash()

    def attempt(self, end: Offset) -> tuple[list[str], list[DataLoss]]:
        offset, self.reader.losses = self.reader.offset, []
        chunks = self.reader.batch(end)
        self.reader.offset = offset
        self.check_places(chunks)
        lines = [raw.value.decode() for chunk in chunks for raw in chunk.lines()]
        return lines, self.reader.losses

    def check_places(self, chunks: list[Chunk]) -> None:
        ends: dict[str, int] = {}
        for chunk in chunks:
            assert chunk.offset >= ends.get(chunk.source_id, 0), "a place in a stream was given away twice"
            ends[chunk.source_id] = chunk.next_offset

    # --- what must hold --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        for writer in self.writers.values():
            writer.close()
        for _ in range(30):
            before = self.reader.offset
            self.trigger(None)
            self.clocks.pass_by(LONG_S)
            if self.reader.offset == before:
                return
        raise AssertionError("there is always another batch")

    def check(self) -> None:
        read = Counter(line for lines, _ in self.batches for line in lines if line)
        strange = sorted(line for line in read if line not in self.model.written)
        assert not strange, f"never written: {strange}"
        assert not [line for line, times in read.items() if times > 1], "counted twice"
        on_disk = {
            item.value.decode()
            for path in find([str(self.logs)]).files
            if Path(path).exists()
            for item in read_path(path)
            if isinstance(item, RawLine)
        }
        losses = [loss for _, batch_losses in self.batches for loss in batch_losses]
        lost = {log: [loss for loss in losses if f"/{log}" in loss.source_id] for log in LOGS}
        missing = {line: log for line, log in self.model.written.items() if line not in read}
        for line, log in missing.items():
            assert line in self.model.gone or line in self.model.excused, f"{line} was never gone and never read"
            assert line not in on_disk or lost[log], f"{line} is read in a scan"
        for log in LOGS:
            unexcused = {line for line, whose in missing.items() if whose == log} - self.model.excused
            times = {self.model.gone[line] for line in unexcused}
            assert len(times) <= len(lost[log]), f"{log}: lines went at the looks {sorted(times)}, recorded {lost[log]}"
            assert not lost[log] or log in self.model.harmed, f"nothing was lost of {log}, and yet: {lost[log]}"
