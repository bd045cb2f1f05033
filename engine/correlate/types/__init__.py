"""Correlation types, one module each: `TYPE` is the name that rules use, `logic` makes the logic object of a rule."""
