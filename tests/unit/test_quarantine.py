"""Whatever a line raises, at any stage, costs that line: everything else is judged as if it were not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from engine.codec import dumps, loads
from engine.columns import bounded, reading
from engine.incident import MemoryLedger, group
from engine.match import Matcher, Redactor, redact
from engine.model.incidents import Evidence, Incident, NotEvaluated, Roster, Verdict
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Progress, RawLine, Tick
from engine.model.rules import Plan
from engine.pipeline import replay
from engine.ports import Chunk
from engine.quarantine import MOST, WITHHELD, Quarantine
from engine.spark.combining import combine
from engine.spark.rows import BatchRow, Scanned, received, sent
from engine.spark.scope import ScopeState
from engine.spark.slices import WorkerStages, scan, stages
from tests.building import at, contains, plan, signature
from tests.poison import HEAD, IN_CORRELATE, IN_GROUP, IN_MATCH, poisoned
from tests.unit.parse.reading import FORMATS

SOUND = [f"{HEAD.format(minute=minute)} broken {minute}\n\tat a.B.c(B.java:1)" for minute in (1, 20, 40)]
MARK = "MARKED"


def entity(number: int) -> str:
    return f"{HEAD.format(minute=number)} {MARK} {number}"


@cache
def rules() -> Plan:
    own = signature("ingest-lines-quarantined", contains("in quarantine"), component="tocsin")
    made = plan(signature("broken", contains("broken"), entity=("cluster", "source")), own)
    return poisoned(replace(made, formats=FORMATS, hash="h"))


@cache
def compiled() -> WorkerStages:
    return stages(rules())


def raw(texts: Iterable[str], source: str = "a.log") -> list[RawLine]:
    lines = "\n".join(texts).encode().split(b"\n")
    return [RawLine(source, number * 1000, line, number + 1) for number, line in enumerate(lines)]


def said(incidents: Iterable[Incident]) -> dict[str, Any]:
    last = {incident.id: incident for incident in incidents}
    return {f"{i.rule} {i.key[2]}": (i.status, i.count, len(i.evidence)) for i in last.values() if i.rule == "broken"}


def reference(texts: Iterable[str]) -> tuple[dict[str, Any], list[DeadLetter]]:
    quarantine = Quarantine(redact)
    incidents = list(replay(raw(texts), rules(), None, None, quarantine))
    return said(incidents), [each for each in quarantine.taken() if isinstance(each, DeadLetter)]


def _raising(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **named: Any) -> Any:
        if MARK in "".join(map(repr, args)):
            raise ArithmeticError("no")
        return call(*args, **named)

    return wrapped


FAULTS = {  # where a stage calls what: it raises on lines that bear MARK
    "unwrap": ("engine.parse.unwrapping.plain",),
    "assemble": ("engine.parse.assembling.opened_by",),
    "decode": ("engine.parse.decoding.exception_chain",),
    "match": ("engine.match.matcher.Fields",),
}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    stage: str = request.param
    for name in FAULTS[stage]:
        module, _, attribute = name.rpartition(".")
        target = __import__(module, fromlist=[attribute])
        monkeypatch.setattr(target, attribute, _raising(getattr(target, attribute)))
    return stage


def test_a_line_that_a_stage_fails_on_costs_that_line(fault: str) -> None:
    sound, _ = reference(SOUND)
    found, letters = reference([SOUND[0], entity(2), SOUND[1], entity(30), SOUND[2]])
    assert found == sound
    assert [(each.stage, each.number, each.lines) for each in letters] == [(fault, 3, 1), (fault, 6, 1)]
    assert all(each.error == "ArithmeticError: no" and MARK in each.text for each in letters)


def test_without_a_quarantine_it_is_raised(fault: str) -> None:
    with pytest.raises(ArithmeticError):
        list(replay(raw([entity(2)]), rules()))


@pytest.mark.parametrize("word", [IN_MATCH, IN_CORRELATE, IN_GROUP])
def test_what_a_rule_fails_on_costs_that_rule(word: str) -> None:
    more = [f"{HEAD.format(minute=2)} {word}-SYMPTOM", f"{HEAD.format(minute=3)} {word} broken"]
    found, letters = reference([*SOUND, *more])
    without, _ = reference([*SOUND, f"{HEAD.format(minute=3)} broken"])
    assert found == without
    assert {each.stage for each in letters} == {word.partition("-")[2].lower()}
    assert {each.lines for each in letters} == {0}, "the lines were judged"


def test_a_dead_letter_bears_no_secret_and_is_bounded() -> None:
    lines = [f"{HEAD.format(minute=n % 60)} {IN_MATCH} {n} password=hunter22 {'x' * 5000}" for n in range(3 * MOST)]
    _, letters = reference(lines)
    assert len(letters) == MOST + 1
    assert not any("hunter22" in dumps(each) for each in letters)
    assert max(len(each.text) for each in letters) < 3000


def test_what_cannot_be_redacted_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "__call__", _raising(Redactor.__call__))
    quarantine = Quarantine(_raising(redact))
    list(replay(raw([f"{HEAD.format(minute=1)} broken {MARK} password=hunter22"]), rules(), None, None, quarantine))
    (letter,) = quarantine.taken()
    assert isinstance(letter, DeadLetter)
    assert (letter.stage, letter.text) == ("match", WITHHELD)


# --- the job's parts ---------------------------------------------------------------------------------------------------


class Job:
    """Slices, keyed state and grouping, each from what the one before wrote as text; the state survives every batch as text."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.ledger = MemoryLedger()
        self.incidents: list[Incident] = []
        self.letters: list[DeadLetter] = []
        self.misdated = self.lines = self._batches = 0

    def batch(self, *chunks: Chunk) -> None:
        self._batches += 1
        items: list[BatchRow] = [item for chunk in chunks for item in combine(scan([chunk], compiled()))]
        items.append(Tick(at(7200 + self._batches)))
        crossed = [received(kind, body) for _, kind, body in (sent("default", each) for each in items)]
        found = ScopeState(compiled(), "default", self.state, bounded=False).take(crossed)
        self._put([received(kind, body) for _, kind, body in (sent("default", each) for each in found)])

    def end(self, *names: str) -> None:
        self._batches += 1
        rows: list[BatchRow] = [Progress(name, 1, 1, caught_up=True, closed=True) for name in names]
        self._put(ScopeState(compiled(), "default", self.state, bounded=True).take(rows))

    def _put(self, found: Sequence[BatchRow]) -> None:
        quarantine = Quarantine(redact)
        findings = [each for each in found if isinstance(each, Verdict | Evidence | Roster | NotEvaluated)]
        self.incidents += group(findings, rules(), self.ledger, quarantine)
        everything = [*found, *quarantine.taken()]
        self.letters += [each for each in everything if isinstance(each, DeadLetter)]
        self.misdated += sum(each.events for each in everything if isinstance(each, Misdated))
        self.lines += sum(each.lines for each in found if isinstance(each, Scanned))


def chunks(texts: Iterable[str], size: int = 2, source: str = "a.log") -> list[Chunk]:
    lines = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass").splitlines(keepends=True)
    parts = [b"".join(lines[begin : begin + size]) for begin in range(0, len(lines), size)]
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    return [Chunk(source, end - len(part), part, 0) for part, end in zip(parts, ends, strict=True)]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_job_goes_on_behind_a_line_that_a_stage_fails_on(fault: str, size: int) -> None:
    sound, job = Job(), Job()
    for each, texts in ((sound, SOUND), (job, [SOUND[0], entity(2), SOUND[1], entity(30), SOUND[2]])):
        for chunk in chunks(texts, size):
            each.batch(chunk)
        each.end("a.log")
    assert said(job.incidents) == said(sound.incidents)
    assert {each.stage for each in job.letters} == {fault}
    assert sum(each.lines for each in job.letters) == 2
    assert job.lines == sound.lines + 2
    own = {incident.id: incident for incident in job.incidents if incident.rule == "ingest-lines-quarantined"}
    assert len(own) == 1, "it is an incident"


@pytest.mark.parametrize("word", [IN_MATCH, IN_CORRELATE, IN_GROUP])
@pytest.mark.parametrize("size", [1, 100])
def test_the_job_goes_on_behind_what_a_rule_fails_on(word: str, size: int) -> None:
    more = [f"{HEAD.format(minute=2)} {word}-SYMPTOM", f"{HEAD.format(minute=3)} {word}"]
    sound, job = Job(), Job()
    for each, texts in ((sound, SOUND), (job, [*more, *SOUND])):
        for chunk in chunks(texts, size):
            each.batch(chunk)
        each.end("a.log")
    assert said(job.incidents) == said(sound.incidents)
    assert {each.stage for each in job.letters} == {word.partition("-")[2].lower()}
    before = len(job.letters)
    for chunk in chunks([f"{HEAD.format(minute=50)} quiet"], source="b.log"):
        job.batch(chunk)
    assert len(job.letters) == before, "it is over when it is in quarantine"


def test_a_rule_that_cannot_be_asked_goes_on_from_what_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job()
    job.batch(*chunks(SOUND[:1]))
    job.batch(*chunks([f"{HEAD.format(minute=5)} broken"], source="b.log"))
    with monkeypatch.context() as patch:
        patch.setattr("engine.correlate.counts.Counts.findings", _failing)
        job.batch()
    assert {each.rule_id for each in job.letters} >= {"broken"}
    before = len(job.letters)
    job.batch(*chunks([f"{HEAD.format(minute=6)} broken"], source="c.log"))
    job.end("a.log", "b.log", "c.log")
    assert len(job.letters) == before
    assert {source for text in said(job.incidents) for source in ("a.log", "b.log", "c.log") if source in text} >= {
        "a.log",
        "c.log",
    }


def _failing(*_: object) -> list[Any]:
    raise ArithmeticError(MARK)


def test_what_columns_fail_on_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{HEAD.format(minute=n % 60)} broken {n}" for n in range(200)]
    plainly, damaged = Job(), Job()
    plainly.batch(*chunks(texts, 1000))
    monkeypatch.setattr(reading, "events_of", _failing)
    damaged.batch(*chunks(texts, 1000))
    for each in (plainly, damaged):
        each.end("a.log")
    assert said(damaged.incidents) == said(plainly.incidents)
    assert (damaged.letters, damaged.lines) == ([], 200)


HALF = '{"level":"ERROR","message":"broken","host":"\\ud800","time":"2022-10-05T17:20:00Z"}'
STATUS = (
    '{"name":"\\ud800","connector":{"state":"RUNNING","worker_id":"w:1"},"tasks":[{"id":0,"state":"FAILED","worker_id":"w:1",'
    '"trace":"broken"}]}'
)


@pytest.mark.parametrize("line", [HALF, HALF[:-20], STATUS], ids=["half a pair", "torn", "status"])
def test_half_a_surrogate_pair_in_a_document_ends_nothing(line: str) -> None:
    job = Job()
    for chunk in chunks([SOUND[0], line, SOUND[1]], 1):
        job.batch(chunk)
    job.end("a.log")
    assert job.letters == []
    assert said(job.incidents)


@pytest.mark.parametrize("year", ["0001", "1969", "9999"])
def test_a_stamp_at_the_end_of_the_calendar_ends_nothing_and_is_counted(year: str) -> None:
    job = Job()
    poison = f"[{year}-01-01 00:00:00,000] ERROR broken"
    for chunk in chunks([SOUND[0], poison, SOUND[1], poison], 1):
        job.batch(chunk)
    job.end("a.log")
    assert job.letters == []
    assert job.misdated == 2


def misdated_lines() -> list[str]:
    """Return lines of which every fifth has a stamp out of bounds, one of them in another layout."""
    years, texts = {0: "1969", 5: "9999"}, ("INFO ok", "ERROR broken", "ERROR broken")
    lines = [f"[{years.get(n % 10, 2022)}-01-01 00:{n % 60:02d}:00,000] {texts[n % 3]} {n}" for n in range(300)]
    return [*lines[:200], "1969-01-01T00:00:00.000Z ERROR broken", *lines[200:]]


def test_misdated_events_are_as_many_by_columns_as_by_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = misdated_lines()
    by_replay = Quarantine(redact)
    list(replay([*raw(texts), Progress("a.log", 1, 1, caught_up=True)], rules(), None, None, by_replay))
    (expected,) = by_replay.taken()
    assert isinstance(expected, Misdated)
    assert expected.events >= 60
    monkeypatch.setattr(bounded, "COLUMNS_FROM_BYTES", 0)
    by_scan = Quarantine(redact)
    reader = bounded.Bounded(rules(), Matcher(rules()), lambda *_: None, quarantine=by_scan)
    list(reader.read([*chunks(texts, 1000), Progress("a.log", 1, 1, caught_up=True, closed=True)]))
    assert reader.cost.decided > 250, "columns decided them"
    assert by_scan.taken() == [expected]
    for size in (70, 1000):
        job = Job()
        for chunk in chunks(texts, size):
            job.batch(chunk)
        job.end("a.log")
        assert job.misdated == expected.events


def test_a_dead_letter_survives_as_text() -> None:
    _, (letter,) = reference([f"{HEAD.format(minute=2)} {IN_MATCH}"])
    assert loads(dumps(letter), DeadLetter) == letter
    assert (
        letter.sentence
        == "what poison-match says of 'a.log' at line 1 in quarantine (match): ValueError: no such operator: unheard-of"
    )
