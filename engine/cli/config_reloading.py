"""Take up a changed tocsin.yml while a run goes on, as far as that is safe, and say what needs a restart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.cli.inputs import checks
from engine.cli.rule_reloading import say_first
from engine.cli.watching import FileWatch
from engine.config import Settings, SlackSettings, load
from engine.errors import DiagnosticsError, TocsinError
from engine.secrets import Secret


class SettingUse(Enum):
    """What uses a setting, and so what a change of it takes: the notifier, the plan of the rules, or a restart."""

    NOTIFIER = "notifier"
    PLAN = "plan"
    RESTART = "restart"


# field of Settings -> (its key in tocsin.yml, what uses it)
USES = {
    "sources": ("sources", SettingUse.RESTART),
    "rules": ("rules", SettingUse.PLAN),
    "overrides": ("overrides", SettingUse.PLAN),
    "accepted_risks": ("audit", SettingUse.NOTIFIER),
    "audit_digest": ("audit", SettingUse.NOTIFIER),
    "context": ("clusters", SettingUse.PLAN),
    "route": ("route", SettingUse.NOTIFIER),
    "notify_max_age_s": ("notify_max_age", SettingUse.NOTIFIER),
    "notify_storm": ("notify_storm", SettingUse.NOTIFIER),
    "receivers": ("receivers", SettingUse.NOTIFIER),
    "fallbacks": ("receivers", SettingUse.NOTIFIER),
    "languages": ("receivers", SettingUse.NOTIFIER),
    "plan_languages": ("receivers", SettingUse.PLAN),
    "store": ("store", SettingUse.RESTART),
    "retention_s": ("retention", SettingUse.RESTART),
    "redaction": ("redact", SettingUse.PLAN),
    "checkpoint": ("spark", SettingUse.RESTART),
    "checkpoint_url": ("spark", SettingUse.RESTART),
    "master": ("spark", SettingUse.RESTART),
    "conf": ("spark", SettingUse.RESTART),
    "cores": ("spark", SettingUse.RESTART),
    "partitions": ("spark", SettingUse.RESTART),
    "parallelism": ("spark", SettingUse.RESTART),
    "heap": ("spark", SettingUse.RESTART),
    "trigger_s": ("spark", SettingUse.RESTART),
    "batch_lines": ("spark", SettingUse.RESTART),
    "batch_bytes": ("spark", SettingUse.RESTART),
    "audited": ("spark", SettingUse.RESTART),
    "web": ("web", SettingUse.RESTART),
    "metrics": ("metrics", SettingUse.RESTART),
    "heartbeat": ("heartbeat", SettingUse.RESTART),
    "links": ("kibana, web.public_url", SettingUse.NOTIFIER),
}


class Reconfiguration(Struct, frozen=True):
    """A changed configuration: the settings that are used from now on, the keys that are taken up, those that need a restart,
    and whether the plan or the notifier changes."""

    settings: Settings
    taken: tuple[str, ...]
    waiting: tuple[str, ...]
    has_new_plan: bool
    has_new_notifier: bool


def reconfiguration(current: Settings, changed: Settings) -> Reconfiguration:
    """Return what a change from `current` to `changed` means for a run. Pure."""
    differing = [name for name in USES if getattr(current, name) != getattr(changed, name)]
    uses = {name: USES[name] for name in differing}
    waiting = [key for key, use in uses.values() if use is SettingUse.RESTART]
    if _app_tokens(current) != _app_tokens(changed):
        waiting.append("receivers[].slack.app_token")
    kept = {name: getattr(current, name) for name, (_, use) in uses.items() if use is SettingUse.RESTART}
    return Reconfiguration(
        replace(changed, **kept),
        tuple(dict.fromkeys(key for key, use in uses.values() if use is not SettingUse.RESTART)),
        tuple(dict.fromkeys(waiting)),
        any(use is SettingUse.PLAN for _, use in uses.values()),
        any(use is SettingUse.NOTIFIER for _, use in uses.values()),
    )


def _app_tokens(settings: Settings) -> set[Secret]:
    """Return the tokens by which a run is connected to Slack, from its start to its end."""
    slack = (receiver for receiver in settings.receivers if isinstance(receiver, SlackSettings))
    return {receiver.app_token for receiver in slack if receiver.app_token is not None}


class RunConfiguration(Struct, frozen=True):
    """A configuration file, and the master that an option names instead of the file's; None: no option does."""

    path: Path
    master: str | None = None

    def load(self) -> Settings:
        """Return the settings. Raises UsageError and ConfigError as `load` of engine.config does."""
        settings = load(self.path, checks())
        return settings if self.master is None else replace(settings, master=self.master)


class ConfigReloader:
    """Polls a configuration. A change is taken when the file is the same in two looks. One that cannot be used is read again at
    each look, since what it lacks may be elsewhere (a variable, a file, a folder of rules).

    Args:
        take: uses the settings of a change; raises TocsinError when they cannot be used, which leaves everything as it was.
        say: takes a sentence about each change; of one that cannot be used, once for each reason.
        clock: a monotonic clock, in seconds.
        requested: while it is set, the file is read at once. It is not cleared.
    """

    def __init__(
        self,
        configuration: RunConfiguration,
        settings: Settings,
        take: Callable[[Reconfiguration], None],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        requested: threading.Event | None = None,
    ) -> None:
        self._configuration, self._settings, self._take, self._say = configuration, settings, take, say
        self._path = configuration.path
        self._watch = FileWatch([self._path], clock)
        self._requested = requested or threading.Event()
        self._refusal = ""  # why the file cannot be used
        self._written = settings  # of the file as it was read last; keys that need a restart are still used as before

    def poll(self) -> None:
        """Take up a change of the file, if there is one."""
        if self._requested.is_set():
            self._watch.take()
            self._refusal = ""
        elif not self._has_changed():
            return
        try:
            changed = self._configuration.load()
            if changed == self._written:
                self._refusal = ""
                return
            change = reconfiguration(self._settings, changed)
            self._take(change)
        except TocsinError as error:
            refusal = f"{error}"
            if refusal != self._refusal:
                self._refuse(error)
            self._refusal = refusal
            return
        self._refusal = ""
        self._settings, self._written = change.settings, changed
        for sentence in _sentences(self._path, change):
            self._say(sentence)

    def _has_changed(self) -> bool:
        """Return whether the file is to be read: it has changed, or it could not be used and a look was due."""
        is_due = self._watch.is_due()
        if self._watch.has_changed():
            self._refusal = ""
            return True
        return bool(self._refusal) and is_due and self._watch.is_at_rest()

    def _refuse(self, error: TocsinError) -> None:
        diagnostics = error.diagnostics if isinstance(error, DiagnosticsError) else ()
        why = f"it is wrong in {len(diagnostics)} places" if diagnostics else str(error)
        self._say(f"{self._path} has changed and cannot be used, so the run goes on with the one before: {why}")
        say_first(diagnostics, self._say, "tocsin config check")


def _sentences(path: Path, change: Reconfiguration) -> list[str]:
    sentences = []
    if change.taken:
        sentences.append(f"{path} has changed; taken up: {', '.join(change.taken)}")
    if change.waiting:
        sentences.append(f"{path} has changed; only a restart takes up: {', '.join(change.waiting)}")
    return sentences
