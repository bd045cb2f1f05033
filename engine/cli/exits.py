"""How a command ends."""

NOTHING_FOUND = 0
FOUND = 1
BAD_REQUEST = 2  # usage, rules or configuration
FAILURE = 3
INTERRUPTED = 130  # what a shell reports for Ctrl-C
READER_GONE = 141  # what a shell reports when the reader of a pipe went away
BY_SIGNAL = 128  # what a shell adds the number of a signal to that ended a command
