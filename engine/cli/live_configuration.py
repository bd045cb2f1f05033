"""The configuration and the rules of a run that goes on: changed files are taken up between two batches."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from engine.cli.config_reloading import ConfigReloader, Reconfiguration, RunConfiguration
from engine.cli.notifying import policy_of
from engine.cli.receiving import Show, open_receiver
from engine.cli.rule_reloading import RuleReloader
from engine.cli.rulebook import configured_plan, configured_rule_paths
from engine.config import Settings
from engine.deliver import NotifierStandby
from engine.model.rules import Plan
from engine.ports import Receiver, Say


class LiveReceivers:
    """The open receivers of a run, and its notifier; None where another process notifies.

    Args:
        receivers: those of `settings`. After a change those whose settings are the same stay open.
    """

    def __init__(
        self, settings: Settings, receivers: Mapping[str, Receiver], notifier: NotifierStandby | None, show: Show
    ) -> None:
        self._settings, self._receivers, self._notifier, self._show = settings, dict(receivers), notifier, show

    def opened(self, settings: Settings) -> Mapping[str, Receiver]:
        """Return the receivers of changed `settings`. Raises UsageError or RuntimeMissing when one cannot be opened."""
        if self._notifier is None:
            return {}
        return {
            receiver.name: self._receivers[receiver.name]
            if receiver in self._settings.receivers
            else open_receiver(receiver, self._show)
            for receiver in settings.receivers
        }

    def use(self, settings: Settings, receivers: Mapping[str, Receiver]) -> None:
        """Notify by `settings` from now on, with the receivers that `opened` returned for them."""
        self._settings, self._receivers = settings, dict(receivers)
        if self._notifier is not None:
            self._notifier.reconfigure(policy_of(settings, receivers, once=False), receivers)


class LiveNotifications:
    """Watches the configuration of a process that only notifies."""

    def __init__(self, path: Path, settings: Settings, receivers: LiveReceivers, say: Say, requested: threading.Event) -> None:
        self._receivers, self._requested = receivers, requested
        self._config = ConfigReloader(RunConfiguration(path), settings, self._take, say, requested=requested)

    def poll(self) -> None:
        """Take up what has changed."""
        self._config.poll()
        self._requested.clear()

    def _take(self, change: Reconfiguration) -> None:
        opened = self._receivers.opened(change.settings)
        if change.has_new_notifier:
            self._receivers.use(change.settings, opened)


class LiveConfiguration:
    """Watches a configuration and the files of its rules, and passes their changes to the job and to `receivers`.

    Args:
        requested: once it is set, all files are read at once, and the result is reported.
    """

    def __init__(
        self,
        configuration: RunConfiguration,
        settings: Settings,
        plan: Plan,
        receivers: LiveReceivers,
        say: Say,
        requested: threading.Event,
    ) -> None:
        self._settings, self._plan, self._receivers, self._say, self._requested = settings, plan, receivers, say, requested
        self._config = ConfigReloader(configuration, settings, self._take, say, requested=requested)
        self._rules = self._rule_reloader()
        self._has_new_plan = False

    def renewed(self) -> Plan | None:
        """Take up what has changed; return the plan of changed rules, once, and None while there is none."""
        self._config.poll()
        if self._has_new_plan:
            self._has_new_plan = False
            return self._plan
        plan = self._rules.poll()
        if plan is not None:
            self._plan = plan
        return plan

    def _rule_reloader(self) -> RuleReloader:
        settings = self._settings
        paths = configured_rule_paths(settings)
        return RuleReloader(paths, self._plan, lambda: configured_plan(settings), self._say, requested=self._requested)

    def _take(self, change: Reconfiguration) -> None:
        """Use a change. Raises TocsinError, and changes nothing, when its rules do not load or a receiver cannot be opened."""
        settings = change.settings
        plan = configured_plan(settings) if change.has_new_plan else self._plan
        opened = self._receivers.opened(settings)
        self._settings, self._plan = settings, plan
        if change.has_new_notifier:
            self._receivers.use(settings, opened)
        if change.has_new_plan:
            self._rules, self._has_new_plan = self._rule_reloader(), True
