"""Frozen types of the whole flow. Imports the standard library only; holds no I/O, no clock, no regular expression engine."""
