"""Matching: which signatures each event bears, and who was heard from when. Pure; knows no other stage.

Nothing here depends on the order of sources: an event's matches are a function of that event alone.
"""

from engine.match.matcher import Matcher
from engine.match.redact import redact
from engine.match.stream import match, matched_of

__all__ = ["Matcher", "match", "matched_of", "redact"]
