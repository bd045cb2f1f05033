"""Frozen types of the whole flow. Imports the standard library and msgspec only: no I/O, no clock, no expression engine."""
