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
from engine.model.placeholders import unfilled, unfilled_of
from engine.model.rules import Rule, Step

MOST_CHOICES = 5  # steps that stand for one of which a value is not certain


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

        A step that lacks a value which can be one of few stands once for each; one of many are named. See render.step.
        """
        topic = str(environment.get("topic", ""))
        fitting = render.fitting(rule.runbook.fix, environment)
        steps = (each for step in fitting for each in self._steps(step, environment, settings, topic))
        return tuple(step if self.now is None else with_present_values(step, of, self.now) for step, of in steps)

    def verification(self, rule: Rule, environment: Mapping[str, Result]) -> str:
        """Return the command that verifies; several commands where it lacks a value which can be one of few."""
        command = render.command(rule.runbook.verify, environment)
        name, values = self._choices(unfilled((command,)))
        if not 0 < len(values) <= MOST_CHOICES:
            return command
        return "; ".join(render.command(rule.runbook.verify, {**environment, name: value}) for value in values)

    def _steps(
        self, template: Step, environment: Mapping[str, Result], settings: Mapping[str, str], topic: str
    ) -> Iterator[tuple[RenderedStep, str]]:
        """Yield the steps that stand for one, each with the topic that it is about."""
        step = render.step(template, environment, settings)
        name, values = self._choices(unfilled_of(step))
        if not values:
            yield step, topic
        elif len(values) > MOST_CHOICES:
            yield (
                replace(step, do=f"{step.do} ({name} is one of {len(values):,}: {', '.join(values[:MOST_CHOICES])}, ...)"),
                topic,
            )
        else:
            unsure = f": the lines do not tell which of {len(values)} it is" if len(values) > 1 else ""
            for value in values:
                of_value = render.step(template, {**environment, name: value}, settings)
                yield replace(of_value, do=f"{of_value.do} ({name} {value}{unsure})"), value if name == "topic" else topic

    def _choices(self, lacking: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return the first name of `lacking` that the picture has values for, and these values; nothing without one."""
        if self.before is None or not lacking:
            return "", ()
        choices = choices_of(self.radius, self.before)
        return next(((name, choices[name]) for name in lacking if choices.get(name)), ("", ()))


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
