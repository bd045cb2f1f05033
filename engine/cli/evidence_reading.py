"""Read what stands around a line of evidence again, from the files, topics and indices that a job reads."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property

from msgspec.structs import replace

from connectors.files import read_chunks
from engine.cli.inputs import files_on_disk, lines_around, open_topic
from engine.cli.rulebook import configured_rule_paths, open_rulebook
from engine.config import Settings, SourceSettings
from engine.errors import ReaderBusy, RulesError, SourceDenied, SourceError, SourceMissing, UsageError
from engine.model.incidents import Evidence
from engine.model.origins import origin_path
from engine.model.proof import Neighbours
from engine.model.records import RawLine, parent_id
from engine.model.rules import Plan
from engine.model.words import worded
from engine.neighbours import EVENTS, LINES_AFTER, lines_of, lines_with, neighbours_of, numbers_around
from engine.ports import Chunk

LISTED_S = 30.0  # how long a listing of the files is used
MOST_FILES = 8  # that may hold a line: its own, and those that it may have been rotated to
MOST_ANSWERS = 64  # that are kept
WAIT_S = 0.5  # for another request that reads a file, so that such requests do not hold the threads of all pages
MOST_BYTES = 1 << 30  # that are read of a file
LEADS = (timedelta(seconds=5), timedelta(minutes=5))  # before a line of a topic; the longer one where few lines are before it
MOST_RECORDS = 20_000  # of a topic that are read
READ_S = 5.0
_LinePlace = tuple[str, int, str]  # source, number of the line, event
_AGAIN = re.compile(r"~\d+$")  # what the name of a stream has when another stream has the name of its file


class ConfiguredPlan:
    """The formats and the redaction of a configuration, loaded when they are first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def plan(self) -> Plan:
        """A plan with them; with built-in formats when the rules of the configuration are wrong."""
        try:
            book = open_rulebook(configured_rule_paths(self._settings))
        except (RulesError, UsageError):
            book = open_rulebook(None)
        return replace(book.plan, redaction=self._settings.redaction)


class InputReader:
    """Reads the neighbours of evidence from the input of a configuration: its files, topics and indices."""

    def __init__(self, settings: Settings) -> None:
        layouts = ConfiguredPlan(settings)
        self._readers = (FilesReader(settings, layouts), TopicsReader(settings, layouts), IndicesReader(settings, layouts))
        self._lock = threading.Lock()  # one line is read at a time
        self._answers: OrderedDict[_LinePlace, tuple[float, Neighbours | None]] = OrderedDict()  # with when they were read
        self._answering = threading.Lock()

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the file of the line is there, or its topic or index is configured."""
        return any(reader.may_read(evidence) for reader in self._readers)

    def neighbours(self, evidence: Evidence) -> Neighbours | None:
        """Return the neighbours of the line; None when no file holds it where the evidence says.

        The last MOST_ANSWERS answers are kept, None for LISTED_S. Raises ReaderBusy when others read for longer than WAIT_S,
        and SourceError when its topic or index does not have it.
        """
        place = (evidence.source_id, evidence.number, evidence.event_id)
        if (answer := self._answer(place)) is not None:
            return answer[1]
        if not self._lock.acquire(timeout=WAIT_S):
            raise ReaderBusy("other lines are being read")
        try:
            if (answer := self._answer(place)) is not None:  # of a request for the same line
                return answer[1]
            around = next((reader.read(evidence) for reader in self._readers if reader.may_read(evidence)), None)
        except UsageError as error:  # a password that this process does not have
            raise SourceDenied(str(error)) from None
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


class FilesReader:
    """Reads the neighbours of evidence from files, whatever they were renamed to by rotation."""

    def __init__(self, settings: Settings, layouts: ConfiguredPlan) -> None:
        self._sources, self._layouts = files_on_disk(settings), layouts
        self._files: Mapping[str, str] = {}
        self._listed_s = -LISTED_S

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the file of the line is there."""
        return bool(evidence.number and not evidence.origin and self._candidates(evidence))

    def read(self, evidence: Evidence) -> Neighbours | None:
        """Return the neighbours of the line; None when no file holds it where the evidence says."""
        numbers = numbers_around([evidence])
        for path in self._candidates(evidence):
            with suppress(SourceError):
                lines = list(lines_with(_chunks(path, evidence), numbers))
                if around := neighbours_of([evidence], lines, self._layouts.plan).get(evidence.event_id):
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


class TopicsReader:
    """Reads the neighbours of evidence from topics: the records from a little before its time on, with the settings of the
    source. The store does not keep where in a topic a line stands, so it is found by its id."""

    def __init__(self, settings: Settings, layouts: ConfiguredPlan) -> None:
        self._sources = [source for source in settings.sources if source.type == "kafka"]
        self._layouts = layouts

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the line came from a topic of the configuration."""
        return not evidence.number and not evidence.origin and self._source(evidence) is not None

    def read(self, evidence: Evidence) -> Neighbours | None:
        """Return the neighbours of the line. Raises SourceError, with a sentence, when they cannot be read any more."""
        named = self._source(evidence)
        if named is None:
            return None
        found = None
        for lead in LEADS:
            lines = list(_lines_since(*named, evidence, evidence.at - lead))
            around = neighbours_of([evidence], lines, self._layouts.plan).get(evidence.event_id)
            found = around or found
            if around is not None and len(around.before) >= EVENTS:
                break
        if found is None:
            raise _gone(*named, evidence)
        return found

    def _source(self, evidence: Evidence) -> tuple[SourceSettings, str] | None:
        """Return the source that reads the topic of a line, and that topic: of several that fit, the longest name."""
        fitting = [(source, topic) for source in self._sources for topic in source.topics if _is_of(evidence, topic)]
        return max(fitting, key=lambda pair: len(pair[1]), default=None)


class IndicesReader:
    """Reads the neighbours of evidence from indices: its document, which the store names, and those around the time of that,
    with the settings and the query of the source."""

    def __init__(self, settings: Settings, layouts: ConfiguredPlan) -> None:
        self._sources = [source for source in settings.sources if source.type == "elasticsearch"]
        self._layouts = layouts

    def may_read(self, evidence: Evidence) -> bool:
        """Return whether the line came from an index of the configuration."""
        return len(origin_path(evidence.origin, "elasticsearch")) == 2 and bool(self._fitting(evidence))

    def read(self, evidence: Evidence) -> Neighbours:
        """Return the neighbours of the line. Raises SourceError, with a sentence, when they cannot be read any more."""
        index, id = origin_path(evidence.origin, "elasticsearch")
        errors = list[SourceError]()
        for source, indices in self._fitting(evidence):  # clusters may have indices of the same names
            try:
                return self._around(evidence, indices, lines_around(source, indices, index, id))
            except SourceError as error:
                errors.append(error)
        raise next((error for error in errors if not isinstance(error, SourceMissing)), errors[-1])

    def _around(self, evidence: Evidence, indices: str, chunks: Iterator[Chunk]) -> Neighbours:
        lines = list(lines_of(chunks, parent_id(evidence.source_id)))
        around = neighbours_of([evidence], lines, self._layouts.plan).get(evidence.event_id)
        if around is not None:
            return around
        if not lines:
            gone = worded(
                "The document of the line is not in {text} any longer: it was deleted, or its index was.", text=indices
            )
            raise SourceMissing(gone)
        raise SourceMissing(
            worded("No other event of its log is in {text} within a day, or its document was changed since.", text=indices)
        )

    def _fitting(self, evidence: Evidence) -> Sequence[tuple[SourceSettings, str]]:
        """Return the sources, and their patterns of indices, that the line may come from: those of the longest pattern."""
        fitting = [(each, indices) for each in self._sources for indices in each.indices if _is_in(evidence, indices)]
        longest = max((len(indices) for _, indices in fitting), default=0)
        return [(each, indices) for each, indices in fitting if len(indices) == longest]


def _is_in(evidence: Evidence, indices: str) -> bool:
    stream = indices.replace("#", "%23")
    return parent_id(evidence.source_id) == stream or evidence.source_id.startswith(f"{stream}/")


def _is_of(evidence: Evidence, topic: str) -> bool:
    return (
        evidence.source_id.startswith(f"{topic}/") or re.fullmatch(rf"{re.escape(topic)}-\d+", evidence.source_id) is not None
    )


def _lines_since(source: SourceSettings, topic: str, evidence: Evidence, since: datetime) -> Iterator[RawLine]:
    """Yield the lines of the source of `evidence` in at most MOST_RECORDS records of the topic, for READ_S seconds."""
    opened = open_topic(source, topic, since.isoformat())
    begin = opened.initial()
    end, until = opened.latest(begin, MOST_RECORDS), time.monotonic() + READ_S
    for slice_ in opened.partitions(begin, end):
        try:
            for chunk in opened.chunks(slice_):
                yield from lines_of((chunk,), parent_id(evidence.source_id))
                if time.monotonic() > until:
                    return
        except ExceptionGroup:  # what is gone is not around it
            continue


def _gone(source: SourceSettings, topic: str, evidence: Evidence) -> SourceMissing:
    """Return why a line was not found: its time is before the first record, or it is not among those that were read."""
    since = (evidence.at - LEADS[0]).isoformat()
    first, then = (open_topic(source, topic, start).initial() for start in ("earliest", since))
    if {at: place["at"] for at, place in first.items()} == {at: place["at"] for at, place in then.items()}:
        return SourceMissing(
            worded("The topic {text} does not hold that time any longer: its retention has passed.", text=topic)
        )
    sentence = worded(
        "It is not among the {number:,} records of the topic {text} that were written from its time on.",
        number=MOST_RECORDS,
        text=topic,
    )
    return SourceMissing(sentence)


def _chunks(path: str, evidence: Evidence) -> Iterator[Chunk]:
    """Yield the chunks of a file up to what is asked for around the line, under the name of its source."""
    for item in read_chunks(path):
        if not isinstance(item, Chunk) or item.number > evidence.number + LINES_AFTER or item.offset > MOST_BYTES:
            return
        yield replace(item, source_id=parent_id(evidence.source_id))
