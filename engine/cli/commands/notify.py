"""Send the notifications about the incidents that `job` puts into the store."""

from __future__ import annotations

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.desk import listening_to_people
from engine.cli.inputs import checks
from engine.cli.live_configuration import LiveNotifications, LiveReceivers
from engine.cli.monitoring import Monitoring
from engine.cli.notifying import build, running_notifier, show_notification
from engine.cli.own_log import LogFormat, LogFormatOption, LogLevel, saying
from engine.cli.receiving import open_receivers
from engine.cli.signals import handle_signals
from engine.config import load
from engine.errors import StoreAway
from engine.model.notifications import Notification
from engine.store import Store
from engine.store.outage import until_back

app = typer.Typer()
_say, _warn = saying("notify"), saying("notify", LogLevel.WARNING)

LOOK_S = 0.5  # between two looks at the signals and at the configuration

HELP = """\
Notify the receivers of a configuration of the incidents in its store, as `tocsin run` does beside its job. Several can run with
one store: one sends, and another takes over within 15 seconds when that one ends or is cut off; nothing is sent twice. Needs
neither Java nor the rules.

\b
Examples:
  tocsin notify -c tocsin.yml

\b
Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 usage or bad configuration, 3 failure.
"""


@app.command(help=HELP)
def notify(config: ConfigOption = DEFAULT_CONFIG, log_format: LogFormatOption = LogFormat.TEXT) -> None:
    """Send the notifications of `config`; the help text is HELP."""
    settings = load(config, checks())
    receivers = open_receivers(settings.receivers, _show)
    monitoring = Monitoring(settings, has_job=False)
    with handle_signals(_say, "what is being sent is finished") as signals, monitoring.running(_say):
        try:
            store = until_back(lambda: Store.open(settings.store), monitoring.waiting(signals.stop), _warn)
        except StoreAway:
            if signals.stop.is_set():
                return
            raise
        _say(f"notifying {', '.join(receivers)} of the incidents of {settings.store}")
        monitoring.opened(store)
        notifier = build(store, settings, receivers, _warn, False, monitoring)
        people = listening_to_people(settings, receivers, store, notifier.wake, _say)
        live = LiveNotifications(config, settings, LiveReceivers(settings, receivers, notifier, _show), _say, signals.reload)
        with people, running_notifier(notifier, _warn):
            while not signals.stop.wait(LOOK_S):
                store.check_file()
                live.poll()
        store.close()


def _show(notification: Notification) -> None:
    show_notification(notification, _say)
