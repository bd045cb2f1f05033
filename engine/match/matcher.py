"""The matcher: compiles the signatures and component lines of a plan once and applies them to one event at a time."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import cached_property

from engine.identity_cache import cached_by_identity
from engine.match.checks import Captures
from engine.match.detectors import Detector, detectors_of, every_test
from engine.match.fields import Fields
from engine.match.prefilter import Prefilter
from engine.match.redact import Redactor, cut, redactor_of
from engine.model.matches import Match
from engine.model.records import Labels, LogEvent
from engine.model.rules import Plan
from engine.ports import Cache

_Hit = tuple[str, Captures, tuple[str, ...]]  # rule id, captures, the items asked for that hold


class Matcher:
    """Applies all signatures and component lines of a plan to events.

    A matcher keeps nothing of an event, so it may be shared.

    Args:
        cache: stores what takes long to compile; None: it is compiled anew.

    Attributes:
        redact: the redactor of the plan.
        prefilter: searches for the signs of all detectors.
        detectors: what is looked for, in the order of matches.
    """

    def __init__(self, plan: Plan, cache: Cache | None = None) -> None:
        self._plan, self.redact = plan, redactor_of(plan.redaction)
        self.detectors: Sequence[Detector] = detectors_of(plan)
        self.prefilter = Prefilter((sign for detector in self.detectors for sign in detector.signs), cache)
        self._without_signs = [number for number, detector in enumerate(self.detectors) if not detector.signs]
        self._numbers: dict[str, list[int]] = {}  # of detectors, by sign
        for number, detector in enumerate(self.detectors):
            for sign in detector.signs:
                self._numbers.setdefault(sign, []).append(number)

    def match_event(self, event: LogEvent) -> list[Match]:
        """Return the matches of `event`, at most one a rule, in the order of the plan; text and captures are redacted.

        Raises ValueError for an operator that does not exist.
        """
        fields = Fields(event)
        hits: list[_Hit] = []
        for detector in self.possible(fields):
            captures = detector.check(fields)
            if captures is not None:
                hits.append((detector.rule_id, captures, detector.held_items(fields)))
        return _matches(event, hits, self.redact) if hits else []

    def match_each(self, event: LogEvent, failures: MutableMapping[str, Exception]) -> list[Match]:
        """Return the matches of the rules that do not raise on `event`; add the errors of the others to `failures`, by rule
        id."""
        fields = Fields(event)
        hits: list[_Hit] = []
        for detector in self.possible(fields):
            try:
                captures = detector.check(fields)
                hits += [(detector.rule_id, captures, detector.held_items(fields))] if captures is not None else []
            except Exception as error:
                failures[detector.rule_id] = error
        return _matches(event, hits, self.redact) if hits else []

    def possible(self, fields: Fields) -> Iterator[Detector]:
        """Set the signs of `fields` and yield the detectors that its event may match, in their order. They are the same for
        events whose texts are equal except for digits."""
        fields.signs = self.prefilter.signs_in(fields.text)
        numbers = {*self._without_signs, *(number for sign in fields.signs for number in self._numbers[sign])}
        return (self.detectors[number] for number in sorted(numbers))

    def may_match(self, text: bytes) -> bool:
        """Tell whether an event with this text may match anything; so it is for all texts that are equal except for digits."""
        return bool(self._without_signs or self.prefilter.signs_in(text))

    def labels_asked(self, labels: Labels) -> tuple[tuple[str, str], ...]:
        """Return those of `labels`, as name and value, that a test looks at. Matches do not depend on the others."""
        tested = self.tested_fields
        return tuple(label for label in labels.items() if not tested.isdisjoint(("labels", f"labels.{label[0]}")))

    @cached_property
    def tested_fields(self) -> frozenset[str]:
        """The fields that tests look at."""
        return frozenset(test.field for test in every_test(self._plan))


@cached_by_identity
def matcher_of(plan: Plan) -> Matcher:
    """Return the matcher of `plan`, compiled once."""
    return Matcher(plan)


def _matches(event: LogEvent, hits: Sequence[_Hit], redact: Redactor) -> list[Match]:
    redacted = redact(event.text)
    evidence, labels = cut(redacted), redact.labels(event.labels)
    return [
        Match(
            rule_id=rule_id,
            event_id=event.event_id,
            source_id=event.source_id,
            number=event.number,
            at=event.at,
            dated=event.timestamp is not None,
            captures=redact.captures(captures, event.text, redacted),
            labels=labels,
            text=evidence,
            origin=event.origin,
            items=items,
        )
        for rule_id, captures, items in hits
    ]
