"""Matching: events in, their matches and the activity spans of their sources out. Pure; imports no other stage.

The matches of an event are a function of that event alone, so the order of the sources does not matter.
"""

from engine.match.matcher import Matcher
from engine.match.redact import Redactor, redact, redactor_of
from engine.match.stream import Observer, match, matched_of

__all__ = ["Matcher", "Observer", "Redactor", "match", "matched_of", "redact", "redactor_of"]
