"""Stories for the tests of the rule pack: sample folders as texts, changed at will, played through the reference pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from connectors.files.rotation import rotation
from engine.config import load as load_config
from engine.dsl import builtin_rules, load_cached
from engine.model.incidents import Incident
from engine.model.records import Labels, Progress, RawLine
from engine.model.rules import Plan
from engine.pipeline import replay

SAMPLES = Path(__file__).parents[2] / "samples"
STORIES = sorted(path for path in SAMPLES.iterdir() if path.name[0].isdigit())
GOODLOGS = sorted(path for path in (SAMPLES / "goodlog").iterdir() if path.is_dir())
NO_LOGS = (".md", ".yml", ".yaml")
INGESTED_AT = datetime(2027, 1, 1, tzinfo=UTC)  # after everything in the samples


class Story(Struct, frozen=True):
    """Log texts by file name, in the order they are read, and the labels of all their lines."""

    logs: Mapping[str, str]
    labels: Labels = field(default_factory=dict)

    def changed(self, old: str, new: str) -> Story:
        """Return the story with `old` replaced in every log and file name. The text must occur: a variant must vary."""
        assert any(old in name or old in text for name, text in self.logs.items()), f"{old!r} is not in the story"
        return replace(self, logs={name.replace(old, new): text.replace(old, new) for name, text in self.logs.items()})

    def only(self, wanted: Callable[[str], bool]) -> Story:
        """Return the story with the files whose names are wanted."""
        return replace(self, logs={name: text for name, text in self.logs.items() if wanted(name)})

    def lines(self, wanted: Callable[[str, str], bool]) -> Story:
        """Return the story with those lines of each file for which `wanted(file, line)`."""
        cut = {name: text.splitlines(keepends=True) for name, text in self.logs.items()}
        kept = {name: [line for line in lines if wanted(name, line)] for name, lines in cut.items()}
        return replace(self, logs={name: "".join(lines) for name, lines in kept.items() if lines})

    def before(self, mark: str) -> Story:
        """Return the story with each log cut off before the first occurrence of `mark`."""
        return replace(self, logs={name: text.partition(mark)[0] for name, text in self.logs.items()})

    def since(self, mark: str) -> Story:
        """Return the story with what each log holds from the first occurrence of `mark` on."""
        return replace(self, logs={name: text[text.index(mark) :] for name, text in self.logs.items() if mark in text})

    def with_log(self, name: str, text: str) -> Story:
        """Return the story with one more file, or another text in it."""
        return replace(self, logs={**self.logs, name: text})

    def backwards(self) -> Story:
        """Return the story with its files read in the opposite order."""
        return replace(self, logs=dict(reversed(self.logs.items())))


@cache
def plan() -> Plan:
    """Return the shipped rules."""
    return load_cached([builtin_rules()])


def story(folder: Path) -> Story:
    """Return the story of a sample folder, with the labels that samples/tocsin.yml gives it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in NO_LOGS)
    logs = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}
    sources = load_config(SAMPLES / "tocsin.yml").sources
    labels = next((dict(source.labels) for source in sources if Path(source.paths[0]).name == folder.name), {})
    return Story(logs, labels)


def play(told: Story, times: int = 1, of: Plan | None = None) -> list[Incident]:
    """Return the final state of every incident of `told` that is a finding of its own, pending ones included.

    `times`: how often every line is delivered, one reading after the other. `of`: the plan; None: the shipped rules.
    """
    final = {incident.id: incident for incident in replay(lines_of(told) * times, of or plan())}
    return [incident for incident in final.values() if incident.status not in ("merged", "retracted")]


def one(told: Story) -> Incident:
    """Return the only incident of `told`."""
    found = play(told)
    assert len(found) == 1, [(incident.rule, dict(incident.labels)) for incident in found]
    return found[0]


def expected(folder: Path) -> Sequence[Mapping[str, Any]]:
    """Return what a sample says must be raised, and nothing else."""
    listed: Sequence[Mapping[str, Any]] = yaml.safe_load((folder / "expected.yml").read_text(encoding="utf-8"))
    return listed


def fix_text(incident: Incident) -> str:
    """Return everything that the fix of an incident says."""
    steps = ({**step.set, **step.also, **step.file} for step in incident.fix)
    settings = [f"{name}={value}" for step in steps for name, value in step.items()]
    return "\n".join([*(f"{step.do}\n{step.run}" for step in incident.fix), *settings])


def unlike(found: Sequence[Incident], folder: Path) -> list[str]:
    """Return in what `found` is not what a sample says must be raised, and nothing else; one sentence each."""
    wanted = expected(folder)
    have, want = (sorted(rules) for rules in ([i.rule for i in found], [each["rule"] for each in wanted]))
    if have != want:
        return [f"raised are {have}, not {want}"]
    nearest = (min((differences(i, each) for i in found if i.rule == each["rule"]), key=len) for each in wanted)
    return [f"{each['rule']}: {said}" for each, wrong in zip(wanted, nearest, strict=True) for said in wrong]


def differences(incident: Incident, wanted: Mapping[str, Any]) -> list[str]:
    """Return what is not as wanted, one sentence each."""
    return [*_wrong_fields(incident, wanted), *_wrong_symptoms(incident, wanted), *_missing_texts(incident, wanted)]


def _wrong_fields(incident: Incident, wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in ("severity", "status", "count", "stage"):
        have = getattr(incident, name)
        if have != wanted.get(name, have):
            yield f"{name} is {have!r}, not {wanted[name]!r}"
    for kind in ("labels", "captures"):
        known: Mapping[str, object] = getattr(incident, kind)
        for name, value in wanted.get(kind, {}).items():
            if str(known.get(name)) != str(value):
                yield f"{kind}.{name} is {known.get(name)!r}, not {value!r}"


def _wrong_symptoms(incident: Incident, wanted: Mapping[str, Any]) -> Iterator[str]:
    listed = wanted.get("symptoms")
    have = {symptom.rule for symptom in incident.symptoms}
    if listed is not None and have != {each["rule"] for each in listed}:
        yield f"symptoms are {sorted(have)}"
    for each in listed or ():
        counted = sum(symptom.count for symptom in incident.symptoms if symptom.rule == each["rule"])
        if counted != each.get("count", counted):
            yield f"{each['rule']} counts {counted}, not {each['count']}"


def _missing_texts(incident: Incident, wanted: Mapping[str, Any]) -> Iterator[str]:
    texts = {"fix_contains": fix_text(incident), "cause_contains": incident.cause, "impact_contains": incident.impact}
    for kind, text in texts.items():
        for part in wanted.get(kind, ()):
            if part not in text:
                yield f"{kind}: {part!r} is not in: {text}"


def lines_of(told: Story) -> list[RawLine | Progress]:
    """Return a story as the pipeline reads it: the lines of its files, and after each that the file is read."""
    zone = ZoneInfo(told.labels.get("timezone", "UTC"))
    items: list[RawLine | Progress] = []
    for name, text in told.logs.items():
        data, offset = text.encode(), 0
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            items.append(RawLine(name, offset, line.rstrip(b"\r\n"), number, INGESTED_AT, told.labels))
            offset += len(line)
        said = rotation(name, zone)
        items.append(Progress(name, offset, offset, caught_up=True, closed=said.closed, covers_until=said.covers_until))
    return items
