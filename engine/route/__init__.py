"""Decide which receivers are notified of an incident, when and why: pure functions of the incident, the routes and the
notification log."""

from engine.route.backfill import digest, is_backfill
from engine.route.decision import Decision, decide_notification, notification_log
from engine.route.floods import Candidate, flood_digest, is_minor, overflow, urgency
from engine.route.hours import hours_change_at, in_interval, mute_reason, muted_by_hours
from engine.route.matchers import MatcherError, holds, parse_matcher
from engine.route.muting import muted_by
from engine.route.reach import covers, excludes_all, words_of
from engine.route.recording import needs_recording, recorded_changes
from engine.route.tree import Target, route, routing_labels

__all__ = [
    "Candidate",
    "Decision",
    "MatcherError",
    "Target",
    "covers",
    "decide_notification",
    "digest",
    "excludes_all",
    "flood_digest",
    "holds",
    "hours_change_at",
    "in_interval",
    "is_backfill",
    "is_minor",
    "mute_reason",
    "muted_by",
    "muted_by_hours",
    "needs_recording",
    "notification_log",
    "overflow",
    "parse_matcher",
    "recorded_changes",
    "route",
    "routing_labels",
    "urgency",
    "words_of",
]
