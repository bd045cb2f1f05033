"""Matching: which signatures each event bears, and who was heard from when. Pure; knows no other stage.

Nothing here depends on the order of sources: an event's matches are a function of that event alone.
"""

from engine.match.matcher import Matcher
from engine.match.redact import Redactor, redact, redactor_of
from engine.match.stream import Observer, match, matched_of

__all__ = ["Matcher", "Observer", "Redactor", "match", "matched_of", "redact", "redactor_of"]
