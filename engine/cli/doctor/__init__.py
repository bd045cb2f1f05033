"""`tocsin doctor`: gather what the parts of a run report, and judge it."""
