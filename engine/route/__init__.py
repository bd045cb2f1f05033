"""Decide which receivers are notified of an incident, when and why: pure functions of the incident, the routes and the
notification log."""

from engine.route.backfill import digest, is_backfill
from engine.route.decision import NOTHING, Decision, decide_notification, notification_log
from engine.route.floods import Candidate, flood_digest, is_minor, overflow, urgency
from engine.route.hours import hours_change_at, in_interval, mute_reason, muted_by_hours
from engine.route.matchers import MatcherError, holds, parse_matcher
from engine.route.muting import muted_by
from engine.route.reach import covers, excludes_all, words_of
from engine.route.recording import needs_recording, recorded_changes
from engine.route.storms import (
    decide_storm,
    held_until,
    in_order,
    is_of,
    is_storm,
    storm_digest,
    storm_id,
    storm_keys,
    storming,
)
from engine.route.tree import Target, route, routing_labels

__all__ = [
    "NOTHING",
    "Candidate",
    "Decision",
    "MatcherError",
    "Target",
    "covers",
    "decide_notification",
    "decide_storm",
    "digest",
    "excludes_all",
    "flood_digest",
    "held_until",
    "holds",
    "hours_change_at",
    "in_interval",
    "in_order",
    "is_backfill",
    "is_minor",
    "is_of",
    "is_storm",
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
    "storm_digest",
    "storm_id",
    "storm_keys",
    "storming",
    "urgency",
    "words_of",
]
