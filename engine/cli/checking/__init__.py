"""Check a configuration and everything that it names, at once and without changing anything."""
