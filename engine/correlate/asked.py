"""What a cluster says of itself when it is asked, beside what logs say: it verifies the end of an alert, or contradicts it.

A word is an answer about one thing (a task, a partition): bad (`unless` of a rule's `clear`) or good (`rules`, or `back`). A
bad word holds until a good one about the same thing; as everything is told once an hour, one that is not repeated holds no
longer than ASKED_ANEW. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.aggregate import MAX_VALUES
from engine.identity_cache import cached_by_identity
from engine.model.rules import Plan
from engine.model.words import worded

ASKED_ANEW = timedelta(minutes=70)
# by the id of a rule over answers, the labels that name what an answer is about, and the captures that they are read from
AskedRules = Mapping[str, Mapping[str, str]]
NOBODY_ASKED: AskedRules = {}
_BETWEEN = "\x1f"


class StateWord(Struct, frozen=True):
    """An answer about `thing` at `at`. `verifies`: it says that an alert is over."""

    at: datetime
    thing: str
    is_bad: bool
    verifies: bool = False


class Contradiction(Struct, frozen=True):
    """A time in which the cluster says that something is still wrong, from `begin` up to, not including, `end`.

    Attributes:
        asked_at: when it last said so.
        is_withdrawn: whether a good word ended it; otherwise nobody has asked since.
        is_verified: whether that word says that all is well (`rules`), and not only that it is better (`back`).
    """

    begin: datetime
    end: datetime
    asked_at: datetime
    is_withdrawn: bool
    is_verified: bool


class ClusterWords(Struct, frozen=True):
    """What the cluster said about an entity: contradictions and verifications, in order of time."""

    contradictions: tuple[Contradiction, ...] = ()
    verified: tuple[datetime, ...] = ()

    def against(self, at: datetime) -> Contradiction | None:
        """Return the contradiction of an end that is certain at `at`; None without one."""
        return next(
            (contradiction for contradiction in self.contradictions if contradiction.begin <= at < contradiction.end), None
        )

    def verified_at(self, at: datetime, before: datetime | None) -> datetime | None:
        """Return when the cluster first said that it is over, from `at` on, no later than ASKED_ANEW; None if it did not.

        Args:
            before: when it began again; None: it did not.
        """
        position = bisect_left(self.verified, at)
        if position == len(self.verified):
            return None
        verified = self.verified[position]
        is_late = verified > at + ASKED_ANEW or (before is not None and verified >= before)
        return None if is_late or self.against(verified) is not None else verified


NO_WORDS = ClusterWords()


@cached_by_identity
def asked_rules_of(plan: Plan) -> AskedRules:
    """Return the rules of `plan` over answers of servers that are asked."""
    rules = (signature.rule for signature in plan.signatures if signature.rule.asked)
    return {rule.id: {label: name for label, name in sorted(rule.entity.items()) if label != "cluster"} for rule in rules}


def thing_of(values: Mapping[str, str | None]) -> str:
    """Return labels as the name of a thing."""
    return _BETWEEN.join(f"{label}={value or ''}" for label, value in values.items())


def is_about(thing: str, entity: Mapping[str, str], named: Mapping[str, Sequence[str]]) -> bool:
    """Return whether an answer about `thing` concerns an alert: every label of the thing is one of its entity, or a value that
    its lines named. If they named several values of several labels, nobody knows which belong together, unless a line names
    both as one (see _whole).

    Args:
        named: the values that the lines of the alert captured, by name, at most MAX_VALUES of each.
    """
    labels = _labels_of(thing)
    whole, parts = _whole(labels, named)
    exact = {**{label: value for label, value in labels.items() if label not in parts}, **whole}
    others = {label: value for label, value in exact.items() if entity.get(label) != value}
    ambiguous = [label for label in others if len(named.get(label, ())) > 1]
    return len(ambiguous) <= 1 and all(value in named.get(label, ()) for label, value in others.items())


def may_be_about(thing: str, entity: Mapping[str, str], named: Mapping[str, Sequence[str]]) -> bool:
    """Return whether an answer about `thing` may concern an alert (see is_about): MAX_VALUES values that its lines named may be
    more, and values of several labels may belong together."""
    labels = _labels_of(thing)
    return all(
        entity.get(label) == value or value in named.get(label, ()) or len(named.get(label, ())) >= MAX_VALUES
        for label, value in {**labels, **_whole(labels, named)[0]}.items()
    )


def _labels_of(thing: str) -> Mapping[str, str]:
    """Return the labels of a thing that have a value."""
    labels = dict(part.partition("=")[::2] for part in thing.split(_BETWEEN)) if thing else {}
    return {label: value for label, value in labels.items() if value}


def _whole(labels: Mapping[str, str], named: Mapping[str, Sequence[str]]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the partition that `labels` name by topic and number, as lines name it, and these two labels; empty without one,
    or if no line does so. Its capture of type `tp`, x, comes with x_topic and x_partition."""
    for label, topic in labels.items():
        name = label.removesuffix("_topic")
        if name != label and name in named and f"{name}_partition" in labels:
            return {name: f"{topic}-{labels[f'{name}_partition']}"}, (label, f"{name}_partition")
    return {}, ()


def words_of(words: Iterable[StateWord]) -> ClusterWords:
    """Return what the words about one entity mean together."""
    by_thing: dict[str, list[StateWord]] = {}
    in_order = sorted(words, key=lambda word: (word.at, word.is_bad, not word.verifies))
    for word in in_order:
        by_thing.setdefault(word.thing, []).append(word)
    single = sorted(chain.from_iterable(map(_of_thing, by_thing.values())), key=lambda contradiction: contradiction.begin)
    return ClusterWords(tuple(_joined(single)), tuple(word.at for word in in_order if word.verifies))


def verified_text(at: datetime) -> str:
    """Return the sentence on a verification."""
    return worded("verified at {time} by asking the cluster", time=_clock(at))


def contradicted_text(why: str, at: datetime, contradiction: Contradiction) -> str:
    """Return the sentence on an end by `why` at `at` that the cluster contradicts."""
    return worded(
        "{why} at {time}, but the cluster, asked at {asked}, says that it is not over",
        why=why,
        time=_clock(at),
        asked=_clock(contradiction.asked_at),
    )


def unbelieved_text(at: datetime) -> str:
    """Return the sentence on an alert that goes on although the cluster said at `at` that it is over."""
    return worded("the cluster, asked at {time}, said that it is over, but later lines say that it is not", time=_clock(at))


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M} UTC"


def _of_thing(words: Sequence[StateWord]) -> Iterable[Contradiction]:
    """Yield the times for which a bad word about one thing holds."""
    begin: datetime | None = None
    asked_at = None
    for word in words:
        if begin is not None and asked_at is not None and (not word.is_bad or word.at >= asked_at + ASKED_ANEW):
            end = min(word.at, asked_at + ASKED_ANEW)
            is_withdrawn = not word.is_bad and end == word.at
            yield Contradiction(begin, end, asked_at, is_withdrawn, is_withdrawn and word.verifies)
            begin = None
        if word.is_bad:
            begin, asked_at = begin or word.at, word.at
    if begin is not None and asked_at is not None:
        yield Contradiction(begin, asked_at + ASKED_ANEW, asked_at, is_withdrawn=False, is_verified=False)


def _joined(in_order: Iterable[Contradiction]) -> Iterable[Contradiction]:
    """Yield the union of contradictions that overlap or touch."""
    joined: Contradiction | None = None
    for contradiction in in_order:
        if joined is None or contradiction.begin > joined.end:
            if joined is not None:
                yield joined
            joined = contradiction
        else:
            last = max(joined, contradiction, key=lambda part: (part.end, part.is_withdrawn))
            joined = replace(last, begin=joined.begin, asked_at=max(joined.asked_at, contradiction.asked_at))
    if joined is not None:
        yield joined
