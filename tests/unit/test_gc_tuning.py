"""What stays is searched for garbage once, or never; what becomes garbage later is still found.

Each in a process of its own: a full collection looks at everything there is, and the other tests leave much.
"""

import subprocess
import sys
from textwrap import dedent

SETTING = """
import gc, weakref
from engine import gc_tuning

class Cycle:  # only a collection ends it
    def __init__(self):
        self.itself = self

def collections(slow):
    gc_tuning.SLOW_S = 0.0 if slow else 3600.0
    gc_tuning.freeze_survivors()

gc.collect()
"""


def holds(script: str) -> None:
    """Run `script`, whose assertions hold."""
    done = subprocess.run([sys.executable, "-c", SETTING + dedent(script)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_left_after_a_slow_collection_is_callback() -> None:
    holds("""
        collections(slow=True)
        kept = [Cycle() for _ in range(1000)]
        gc.collect()
        assert gc.get_freeze_count() > len(kept)
    """)


def test_quick_collections_set_nothing_aside() -> None:
    holds("""
        collections(slow=False)
        gc.collect()
        assert gc.get_freeze_count() == 0
    """)


def test_nor_do_those_of_young_objects() -> None:
    holds("""
        collections(slow=True)
        gc.collect(1)
        assert gc.get_freeze_count() == 0
    """)


def test_garbage_that_comes_later_is_collected() -> None:
    holds("""
        collections(slow=True)
        gc.collect()
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None
    """)


def test_what_was_callback_and_is_garbage_now_is_collected_once_asked_again() -> None:
    holds("""
        collections(slow=True)
        plan = Cycle()
        gone = weakref.ref(plan)
        gc.collect()
        del plan
        gc.collect()
        assert gone() is not None
        gc_tuning.freeze_survivors()
        gc.collect()
        assert gone() is None
    """)


def test_what_stays_from_the_first_is_never_searched() -> None:
    holds("""
        with gc_tuning.without_gc():
            assert not gc.isenabled()
            kept = [Cycle() for _ in range(1000)]
        assert gc.isenabled() and gc.get_freeze_count() > len(kept)
    """)


def test_being_asked_again_does_no_more() -> None:
    holds("""
        collections(slow=True)
        before = len(gc.callbacks)
        gc_tuning.freeze_survivors()
        assert len(gc.callbacks) == before
    """)
