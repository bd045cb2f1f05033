"""The exit codes of commands."""

NOTHING_FOUND = 0
FOUND = 1
BAD_REQUEST = 2  # usage, rules or configuration
FAILURE = 3
INTERRUPTED = 130  # as shells report Ctrl-C
READER_GONE = 141  # as shells report that the reader of a pipe closed it
BY_SIGNAL = 128  # shells report a command that a signal ended as this plus the signal's number
