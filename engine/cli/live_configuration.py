"""The configuration and the rules of a run that goes on: changed files are taken up between two batches."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from engine.cli.config_reloading import ConfigReloader, Reconfiguration
from engine.cli.notifying import explained_rules, policy_of
from engine.cli.receiving import Show, open_receiver
from engine.cli.rule_reloading import RuleReloader
from engine.cli.rulebook import configured_plan, configured_rule_paths
from engine.config import Settings
from engine.deliver import Notifier
from engine.model.rules import Plan
from engine.ports import Receiver, Say


class LiveConfiguration:
    """Watches the configuration at `path` and the files of its rules, and passes their changes to the job and to `notifier`.

    Args:
        receivers: the open receivers of `settings`; those whose settings do not change stay open.
        requested: once it is set, all files are read at once, and the result is reported.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        plan: Plan,
        receivers: Mapping[str, Receiver],
        notifier: Notifier,
        show: Show,
        say: Say,
        requested: threading.Event,
    ) -> None:
        self._settings, self._plan, self._receivers = settings, plan, dict(receivers)
        self._notifier, self._show, self._say, self._requested = notifier, show, say, requested
        self._config = ConfigReloader(path, settings, self._take, say, requested=requested)
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
            self._notifier.rules_changed(explained_rules(plan))
        return plan

    def _rule_reloader(self) -> RuleReloader:
        settings = self._settings
        paths = configured_rule_paths(settings)
        return RuleReloader(paths, self._plan, lambda: configured_plan(settings), self._say, requested=self._requested)

    def _take(self, change: Reconfiguration) -> None:
        """Use a change. Raises TocsinError, and changes nothing, when its rules do not load or a receiver cannot be opened."""
        settings = change.settings
        plan = configured_plan(settings) if change.has_new_plan else self._plan
        unchanged = {receiver.name for receiver in settings.receivers if receiver in self._settings.receivers}
        receivers = {
            receiver.name: self._receivers[receiver.name] if receiver.name in unchanged else open_receiver(receiver, self._show)
            for receiver in settings.receivers
        }
        self._settings, self._plan, self._receivers = settings, plan, receivers
        if change.has_new_plan or change.has_new_notifier:
            self._notifier.reconfigure(policy_of(settings, plan, receivers, once=False), receivers)
        if change.has_new_plan:
            self._rules, self._has_new_plan = self._rule_reloader(), True
