"""Check receivers: that their secrets can be read, and that they can be reached and are allowed to send."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from engine.cli.checking.outcomes import CheckedItem, CheckOutcome, of_inspection
from engine.cli.receiving import InspectableReceiver, open_receiver
from engine.config import ReceiverSettings, Settings, TerminalSettings
from engine.errors import RuntimeMissing, UsageError

AT_ONCE = 8


def checked_receivers(settings: Settings) -> Iterator[CheckedItem]:
    """Yield the outcome for every receiver, in their order; nothing is sent. They are asked side by side."""
    with ThreadPoolExecutor(AT_ONCE, "receiver-check") as pool:
        for items in pool.map(_checked, settings.receivers):
            yield from items


def _checked(settings: ReceiverSettings) -> list[CheckedItem]:
    try:
        receiver = open_receiver(settings, lambda notification: None)
    except UsageError as error:
        return [
            CheckedItem("receiver", settings.name, CheckOutcome.WRONG, str(error).removeprefix(f"receiver {settings.name}: "))
        ]
    except RuntimeMissing as error:
        return [CheckedItem("receiver", settings.name, CheckOutcome.FAILED, str(error))]
    if not isinstance(receiver, InspectableReceiver):
        is_terminal = isinstance(settings, TerminalSettings)
        sentence = "prints to the terminal" if is_terminal else "its secrets can be read; tocsin receivers test tries it"
        return [CheckedItem("receiver", settings.name, CheckOutcome.OK, sentence)]
    return [of_inspection("receiver", settings.name, inspection) for inspection in receiver.inspect()]
