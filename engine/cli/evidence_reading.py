"""Read what stands around a line of evidence again, from the files that a job reads."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from connectors.files import read_chunks
from engine.cli.inputs import files_on_disk
from engine.cli.rulebook import configured_rule_paths, open_rulebook
from engine.config import Settings
from engine.errors import ReaderBusy, RulesError, SourceError, UsageError
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.model.records import parent_id
from engine.model.rules import Plan
from engine.neighbours import LINES_AFTER, lines_with, neighbours_of, numbers_around
from engine.ports import Chunk

LISTED_S = 30.0  # how long a listing of the files is used
MOST_FILES = 8  # that may hold a line: its own, and those that it may have been rotated to
MOST_ANSWERS = 64  # that are kept
WAIT_S = 0.5  # for another request that reads a file, so that such requests do not hold the threads of all pages
MOST_BYTES = 1 << 30  # that are read of a file
_LinePlace = tuple[str, int, str]  # source, number of the line, event
_AGAIN = re.compile(r"~\d+$")  # what the name of a stream has when another stream has the name of its file


class FilesReader:
    """Reads the neighbours of evidence from the files of a configuration, whatever they were renamed to by rotation."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._sources = settings, files_on_disk(settings)
        self._plan: Plan | None = None
        self._files: Mapping[str, str] = {}
        self._listed_s = -LISTED_S
        self._lock = threading.Lock()  # one file is read at a time
        self._answers: OrderedDict[_LinePlace, tuple[float, Neighbours | None]] = OrderedDict()  # with when they were read
        self._answering = threading.Lock()

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the file of the line is there."""
        return bool(evidence.number and not evidence.origin and self._candidates(evidence))

    def neighbours(self, evidence: Evidence) -> Neighbours | None:
        """Return the neighbours of the line; None when no file holds it where the evidence says.

        The last MOST_ANSWERS answers are kept, None for LISTED_S. Raises ReaderBusy when others read for longer than WAIT_S.
        """
        place = (evidence.source_id, evidence.number, evidence.event_id)
        if (answer := self._answer(place)) is not None:
            return answer[1]
        if not self._lock.acquire(timeout=WAIT_S):
            raise ReaderBusy("other lines are being read")
        try:
            if (answer := self._answer(place)) is not None:  # of a request for the same line
                return answer[1]
            around = self._read(evidence)
        finally:
            self._lock.release()
        with self._answering:
            self._answers[place] = (time.monotonic(), around)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        return around

    def _answer(self, place: _LinePlace) -> tuple[float, Neighbours | None] | None:
        """Return the answer that is kept for a place; None when there is none that can be used."""
        with self._answering:
            answer = self._answers.get(place)
            if answer is None or (answer[1] is None and time.monotonic() - answer[0] >= LISTED_S):
                return None
            self._answers.move_to_end(place)
            return answer

    def _read(self, evidence: Evidence) -> Neighbours | None:
        numbers = numbers_around([evidence])
        for path in self._candidates(evidence):
            with suppress(SourceError):
                lines = list(lines_with(_chunks(path, evidence), numbers))
                if around := neighbours_of([evidence], lines, self._layouts()).get(evidence.event_id):
                    return around
        return None

    def _candidates(self, evidence: Evidence) -> Sequence[str]:
        """Return the paths that may hold the line: that of its own name first."""
        name = parent_id(evidence.source_id)
        home = _AGAIN.sub("", name)
        files = self._listing()
        own = [files[other] for other in dict.fromkeys((name, home)) if other in files]
        rotated = [path for other, path in files.items() if other.startswith(home) and path not in own]
        return (*own, *rotated)[:MOST_FILES]

    def _listing(self) -> Mapping[str, str]:
        """Return the path of every file by the name of its source."""
        if time.monotonic() - self._listed_s >= LISTED_S:
            self._files = {name: path for source in self._sources for name, path in source.files().items()}
            self._listed_s = time.monotonic()
        return self._files

    def _layouts(self) -> Plan:
        """Return a plan with the formats and redaction of the configuration; with built-in formats when its rules are wrong."""
        if self._plan is None:
            try:
                book = open_rulebook(configured_rule_paths(self._settings))
            except (RulesError, UsageError):
                book = open_rulebook(None)
            self._plan = replace(book.plan, redaction=self._settings.redaction)
        return self._plan


def _chunks(path: str, evidence: Evidence) -> Iterator[Chunk]:
    """Yield the chunks of a file up to what is asked for around the line, under the name of its source."""
    for item in read_chunks(path):
        if not isinstance(item, Chunk) or item.number > evidence.number + LINES_AFTER or item.offset > MOST_BYTES:
            return
        yield replace(item, source_id=parent_id(evidence.source_id))
