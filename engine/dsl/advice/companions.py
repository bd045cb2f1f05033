"""A setting that does nothing, or is refused, without another one is not advised alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import steps
from engine.dsl.report import Report
from engine.dsl.schema import StepEntry
from engine.dsl.settings import PREFIXES

# setting, without the prefixes of workers, connectors and others -> (its companion, why)
COMPANIONS: Mapping[str, tuple[str, str]] = {
    "basic.auth.user.info": (
        "basic.auth.credentials.source",
        "it is not read unless that is USER_INFO; the default is URL",
    ),
    "errors.deadletterqueue.topic.name": ("errors.tolerance", "without all there, the first such record ends the task"),
    "sasl.jaas.config": ("sasl.mechanism", "the login module has to fit it; the default is GSSAPI"),
    "session.timeout.ms": (
        "group.max.session.timeout.ms",
        "a broker refuses a member with more than that, 30000 before 0.10.1",
    ),
    "ssl.keystore.location": ("ssl.keystore.password", "the key store cannot be opened without it"),
    "transaction.timeout.ms": (
        "transaction.max.timeout.ms",
        "a broker refuses a producer with more than that, 900000 unless set",
    ),
}
_PREFIXES = ("schema.registry.", *(prefix for prefixes in PREFIXES.values() for prefix in prefixes))


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each setting of a step whose companion neither the step's settings nor its words name."""
    for loc, step in steps(draft):
        for name in step.set:
            for companion, why in _companions(name):
                if not _names(step, companion):
                    message = f"`{name}` is set, and `{companion}` is not named: {why}"
                    at = draft.document.key([*loc, "set", name])
                    report.add(Code.NO_COMPANION, at, message, f"set `{companion}` too, or say in `do` what it has to be")


def _companions(name: str) -> Iterator[tuple[str, str]]:
    bare = _bare(name)
    return (companion for setting, companion in COMPANIONS.items() if bare == setting)


def _bare(name: str) -> str:
    """Return a setting without the prefixes that say whose it is, such as `value.converter.schema.registry.`."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    return _bare(name.removeprefix(prefix)) if prefix else name


def _names(step: StepEntry, companion: str) -> bool:
    return companion in step.do or any(name.endswith(companion) for name in (*step.set, *step.also))
