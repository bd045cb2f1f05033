"""What signals mean to a run: SIGTERM and SIGINT end it, SIGHUP has the rules read again, SIGQUIT shows what it is doing."""

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
    """`stop` is set by SIGTERM and SIGINT, `reload` by SIGHUP. `ended_by` is the number of the one that set `stop`, if any."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.stop, self.reload = threading.Event(), threading.Event()
        self.ended_by: int | None = None

    def _end(self, number: int, _frame: FrameType | None) -> None:
        """End in good order; whoever asks again wants it at once, and gets it from the kernel."""
        self.ended_by = number
        self.stop.set()
        for each in _ENDING:
            signal.signal(each, signal.SIG_DFL)
        self._say("ending: the batch at work is finished or taken back (once more ends at once)")

    def _read_again(self, _number: int, _frame: FrameType | None) -> None:
        self.reload.set()


@contextmanager
def handled(say: Callable[[str], None]) -> Iterator[Signals]:
    """Take the signals of this process while the body runs. On the main thread only."""
    signals = Signals(say)
    handlers = {**dict.fromkeys(_ENDING, signals._end), signal.SIGHUP: signals._read_again}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    faulthandler.register(signal.SIGQUIT, file=sys.__stderr__ or sys.stderr, all_threads=True, chain=False)
    try:
        yield signals
    finally:
        faulthandler.unregister(signal.SIGQUIT)
        for number, handler in before.items():
            if signals.ended_by is None or number not in _ENDING:
                signal.signal(number, handler)  # once asked to end, nothing may come in between with a traceback
