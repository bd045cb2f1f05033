"""The signals of a run: SIGTERM and SIGINT end it, SIGHUP reloads the rules, SIGQUIT prints what every thread is doing."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """The signals that arrived.

    Attributes:
        stop: set by SIGTERM and SIGINT.
        reload: set by SIGHUP.
        ended_by: the number of the signal that set `stop`; None before.
    """

    def __init__(self, say: Callable[[str], None], ending: str) -> None:
        self._say, self._ending = say, ending
        self.stop, self.reload = threading.Event(), threading.Event()
        self.ended_by: int | None = None

    def _end(self, number: int, _frame: FrameType | None) -> None:
        """Request an orderly end. A second signal ends the process at once, by the kernel's default."""
        self.ended_by = number
        self.stop.set()
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_DFL)
        self._say(f"ending: {self._ending} (once more ends at once)")

    def _read_again(self, _number: int, _frame: FrameType | None) -> None:
        self.reload.set()


@contextmanager
def handle_signals(
    say: Callable[[str], None], ending: str = "the batch at work is finished or taken back"
) -> Iterator[Signals]:
    """Handle the signals of this process while the body runs. On the main thread only.

    Args:
        ending: what happens before the end.
    """
    signals = Signals(say, ending)
    handlers = {**dict.fromkeys(_ENDING, signals._end), signal.SIGHUP: signals._read_again}
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    faulthandler.register(signal.SIGQUIT, file=sys.__stderr__ or sys.stderr, all_threads=True, chain=False)
    try:
        yield signals
    finally:
        faulthandler.unregister(signal.SIGQUIT)
        for number, handler in previous.items():
            if signals.ended_by is None or number not in _ENDING:
                signal.signal(number, handler)  # after a stop the default stays: a traceback would interrupt the end


@contextmanager
def stopping_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Have the first Ctrl-C call `stop` while the body runs; the next one interrupts as ever. On other threads than the main
    one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        stop()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
