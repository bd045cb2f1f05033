"""How a command ends (DESIGN 6.1)."""

NOTHING_FOUND = 0
FOUND = 1
BAD_REQUEST = 2  # usage, rules or configuration
FAILURE = 3
READER_GONE = 141  # what a shell reports when the reader of a pipe went away
