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
from engine.model.pictures import ClusterPicture
from engine.model.placeholders import unfilled_of
from engine.model.rules import Rule, Step
from engine.model.words import filled, frame

MOST_CHOICES = 5  # steps that stand for one of which a value is not certain, and names in a remark
_NOT_NAMED = frame("{do} ({name} {value}: the lines do not name it)")
_ONE_OF = frame("{do} ({name} {value}: the lines do not tell which of {number} it is)")
_MAY_BE = frame("{do} (the lines do not name the {name}; it may be {values})")
_MAY_BE_ONE_OF = frame("{do} (the lines do not name the {name}; it may be one of {number:,}: {values})")


class ClusterView(Struct, frozen=True):
    """What a cluster that is asked adds to an incident; nothing where nobody asks.

    Attributes:
        before: the last picture before the incident began, or the newest one if there is none.
        now: the newest picture until the incident was over.
        radius: what it touches, by the picture before.
    """

    before: ClusterPicture | None = None
    now: ClusterPicture | None = None
    radius: BlastRadius | None = None

    def values(self, environment: Environment) -> Mapping[str, Result]:
        """Return the names and values that the picture adds to `environment`."""
        return {} if self.before is None else known_values(environment, self.radius, self.before)

    def impact(self, text: str) -> str:
        """Return the impact of a rule with what the incident touches."""
        touched = sentences(self.radius) if self.radius is not None else ""
        if not touched or not text:
            return text or touched
        return f"{text} {touched}" if text.endswith(".") else f"{text}. {touched}"

    def fix(self, rule: Rule, environment: Mapping[str, Result], settings: Mapping[str, str]) -> tuple[RenderedStep, ...]:
        """Return the steps of a fix, with the present values of what they change.

        A step that lacks a value which can be one of few stands once for each, with a remark; of many, and in a step that
        changes something, they are named, and the placeholder stays. See render.step.
        """
        topic = str(environment.get("topic", ""))
        fitting = render.fitting(rule.runbook.fix, environment)
        steps = (each for step in fitting for each in self._steps(step, environment, settings, topic))
        return tuple(step if self.now is None else with_present_values(step, of, self.now) for step, of in steps)

    def _steps(
        self, template: Step, environment: Mapping[str, Result], settings: Mapping[str, str], topic: str
    ) -> Iterator[tuple[RenderedStep, str]]:
        """Yield the steps that stand for one, each with the topic that it is about.

        A step that changes something is never given a value that no line names.
        """
        step = render.step(template, environment, settings)
        name, values = self._choices(unfilled_of(step))
        if not values:
            yield step, topic
        elif template.changes_state or len(values) > MOST_CHOICES:
            yield replace(step, do=_with_choices(step.do, name, values)), topic
        else:
            remark = _NOT_NAMED if len(values) == 1 else _ONE_OF
            for value in values:
                of_value = render.step(template, {**environment, name: value}, settings)
                words = {"do": of_value.do, "name": name, "value": value, "number": len(values)}
                yield replace(of_value, do=filled(remark, words)), value if name == "topic" else topic

    def _choices(self, lacking: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return the first name of `lacking` that the picture has values for, and these values; nothing without one."""
        if self.before is None or not lacking:
            return "", ()
        choices = choices_of(self.radius, self.before)
        return next(((name, choices[name]) for name in lacking if choices.get(name)), ("", ()))


def _with_choices(do: str, name: str, values: Sequence[str]) -> str:
    """Return the words of a step that lacks the value `name`, with what it may be."""
    listed = ", ".join((*values[:MOST_CHOICES], *(["..."] if len(values) > MOST_CHOICES else [])))
    pattern = _MAY_BE if len(values) == 1 else _MAY_BE_ONE_OF
    return filled(pattern, {"do": do, "name": name, "values": listed, "number": len(values)})


def view_of(root: Alert, alerts: Sequence[Alert], pictures: Callable[[datetime], ClusterPicture | None]) -> ClusterView:
    """Return the cluster as an incident sees it.

    Args:
        alerts: the firings and stages of the incident.
        pictures: returns the picture of the cluster at a time.
    """
    now = pictures(_until(alerts)) or pictures(EVER)
    if now is None:
        return ClusterView()
    dated = [alert.starts_at for alert in alerts if alert.dated]
    before = (pictures(min(dated) - timedelta(microseconds=1)) if dated else None) or now
    return ClusterView(before, now, blast_of(root, before))


def _until(alerts: Sequence[Alert]) -> datetime:
    """Return when all alerts were over; EVER while one is not."""
    ended = [alert.ends_at for alert in alerts if alert.dated and alert.ends_at is not None]
    return max(ended) if len(ended) == len(alerts) else EVER
