"""The cluster as an incident sees it: the pictures before it and of now, what it touches, and its fix with their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.incident import render
from engine.incident.blasts import blast_of, sentences
from engine.incident.present import choices_of, known_values, with_present_values
from engine.model.blast import BlastRadius
from engine.model.expressions import Environment, Result
from engine.model.incidents import EVER, Alert, RenderedStep
from engine.model.pictures import ROUNDS_GO_ON, ClusterPicture
from engine.model.placeholders import unfilled_of
from engine.model.rules import Rule, Step, Template
from engine.model.words import ENGLISH, Words, marked

MOST_CHOICES = 5  # steps that stand for one of which a value is not certain, and names in a remark
NAMES = marked("topic", "group")  # of values that may be taken from a picture


class ClusterView(Struct, frozen=True):
    """What a cluster that is asked adds to an incident; nothing where nobody asks.

    Attributes:
        before: the last picture before the incident began, or the newest one if there is none, or if it is too old.
        now: the newest picture until the incident was over; None if it is too old for when the incident last changed.
        radius: what it touches, by the picture before.
        at: when `now` was so; None when nobody was asked at a time.
    """

    before: ClusterPicture | None = None
    now: ClusterPicture | None = None
    radius: BlastRadius | None = None
    at: datetime | None = None

    def values(self, environment: Environment) -> Mapping[str, Result]:
        """Return the names and values that the picture adds to `environment`."""
        return {} if self.before is None else known_values(environment, self.radius, self.before)

    def impact(self, text: str, words: Words = ENGLISH) -> str:
        """Return the impact of a rule, which is in the language of `words`, with what the incident touches."""
        touched = sentences(self.radius, words) if self.radius is not None else ""
        if not touched or not text:
            return text or touched
        return f"{text} {touched}" if text.endswith(".") else f"{text}. {touched}"

    def fix(
        self, rule: Rule, environment: Mapping[str, Result], settings: Mapping[str, str], words: Words = ENGLISH
    ) -> tuple[RenderedStep, ...]:
        """Return the steps of a fix, with the present values of what they change.

        A step that lacks a value which can be one of few stands once for each, with a remark; of many, and in a step that
        changes something, they are named, and the placeholder stays. See render.step. Remarks are in the language of `words`
        where the step is.
        """
        fitting = render.fitting(rule.runbook.fix, environment)
        return tuple(step for template in fitting for step in self._steps(template, environment, settings, words))

    def _steps(
        self, template: Step, environment: Mapping[str, Result], settings: Mapping[str, str], words: Words
    ) -> Iterator[RenderedStep]:
        """Yield the steps that stand for one. A step that changes something is never given a value that no line names."""
        words = words_in(template.do, words)
        step, topic = render.step(template, environment, settings), str(environment.get("topic", ""))
        name, values = self._choices(unfilled_of(step))
        if not values:
            yield self._with_present_values(step, topic, words)
        elif template.changes_state or len(values) > MOST_CHOICES:
            yield self._with_present_values(replace(step, do=_with_choices(step.do, name, values, words)), topic, words)
        else:
            for value in values:
                of_value = render.step(template, {**environment, name: value}, settings)
                of_value = replace(of_value, do=_with_choice(of_value.do, name, value, len(values), words))
                yield self._with_present_values(of_value, value if name == "topic" else topic, words)

    def _with_present_values(self, step: RenderedStep, topic: str, words: Words) -> RenderedStep:
        return step if self.now is None else with_present_values(step, topic, self.now, self.at, words)

    def _choices(self, lacking: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return the first name of `lacking` that the picture has values for, and these values; nothing without one."""
        if self.before is None or not lacking:
            return "", ()
        choices = choices_of(self.radius, self.before)
        return next(((name, choices[name]) for name in lacking if choices.get(name)), ("", ()))


def words_in(template: Template, words: Words) -> Words:
    """Return `words` where `template` is in their language, or empty; else English, as it is shown in English."""
    return words if words.language in template.translations or not any(template.parts) else ENGLISH


def _with_choice(do: str, name: str, value: str, number: int, words: Words) -> str:
    """Return the words of a step in which `value` is one of `number` values that `name` can have."""
    if number == 1:
        return words("{do} ({name} {value}: the lines do not name it)", do=do, name=words(name), value=value)
    return words(
        "{do} ({name} {value}: the lines do not tell which of {number} it is)",
        do=do,
        name=words(name),
        value=value,
        number=number,
    )


def _with_choices(do: str, name: str, values: Sequence[str], words: Words) -> str:
    """Return the words of a step that lacks the value `name`, with what it may be."""
    listed = ", ".join((*values[:MOST_CHOICES], *(["..."] if len(values) > MOST_CHOICES else [])))
    if len(values) == 1:
        return words("{do} (the lines do not name the {name}; it may be {values})", do=do, name=words(name), values=listed)
    return words(
        "{do} (the lines do not name the {name}; it may be one of {number:,}: {values})",
        do=do,
        name=words(name),
        values=listed,
        number=len(values),
    )


def view_of(root: Alert, alerts: Sequence[Alert], pictures: Callable[[datetime], ClusterPicture | None]) -> ClusterView:
    """Return the cluster as an incident sees it.

    Args:
        alerts: the firings and stages of the incident.
        pictures: returns the picture of the cluster at a time.
    """
    dated = [alert for alert in alerts if alert.dated]
    changed_at = max((alert.ends_at or alert.last_seen for alert in dated), default=None)
    latest = (pictures(until) for until in (_until(alerts), EVER))
    now = next((picture for picture in latest if picture is not None and not _is_too_old(picture, changed_at)), None)
    began_at = min((alert.starts_at for alert in dated), default=None)
    before = pictures(began_at - timedelta(microseconds=1)) if began_at is not None else None
    if before is None or _is_too_old(before, began_at):
        before = now
    if before is None:
        return ClusterView()
    return ClusterView(before, now, blast_of(root, before), _as_of(now, changed_at))


def _is_too_old(picture: ClusterPicture, at: datetime | None) -> bool:
    """Return whether a picture tells nothing of the cluster at that time; a time that no line tells is one of now."""
    return at is not None and picture.is_too_old(at)


def _as_of(now: ClusterPicture | None, changed_at: datetime | None) -> datetime | None:
    """Return the time that present values are told of: when the incident last changed, as long as rounds went on until then, or
    when the cluster changed after that. It does not move with every round, as nothing is decided anew by one without news."""
    if now is None or now.confirmed_at is None or changed_at is None:
        return None
    asked_until = changed_at if changed_at - now.confirmed_at <= ROUNDS_GO_ON else now.confirmed_at
    return max(asked_until, now.settings_at or asked_until)


def _until(alerts: Sequence[Alert]) -> datetime:
    """Return when all alerts were over; EVER while one is not."""
    ended = [alert.ends_at for alert in alerts if alert.dated and alert.ends_at is not None]
    return max(ended) if len(ended) == len(alerts) else EVER
