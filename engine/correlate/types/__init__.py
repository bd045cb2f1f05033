"""Correlation types, one module each: `TYPE` is the name that rules use, `state_of` makes the empty state of a rule."""
